// What was written reaches the disk.
#pragma once

#include <filesystem>

namespace pumice {

// Both throw Error with the system's reason. Some file systems cannot sync folders; that passes.
void sync_file(const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);

}  // namespace pumice
