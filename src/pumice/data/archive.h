// Unpacking .tar.gz and .zip.
#pragma once

#include <cstdint>
#include <filesystem>

namespace pumice {

// Unpacks regular files and folders into `folder`, which must exist. Throws Error naming the
// archive and the entry for an absolute path, a "..", a link or a device, for damage, and when more
// than `largest_total` bytes come out. What was unpacked by then stays: call it on an AtomicFolder.
void extract_archive(const std::filesystem::path& archive, const std::filesystem::path& folder,
                     std::uint64_t largest_total = std::uint64_t{8} << 30);

}  // namespace pumice
