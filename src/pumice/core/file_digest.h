// The digest of a whole file.
#pragma once

#include <filesystem>
#include <string>

namespace pumice {

// BLAKE2b of all its bytes, as "blake2b:<64 hex digits>". Throws Error. Cost: one reading.
std::string file_digest(const std::filesystem::path& path);

}  // namespace pumice
