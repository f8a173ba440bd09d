// Published checksums of downloaded files. Our own digests are BLAKE2b, see core/digest.h.
#pragma once

#include <filesystem>
#include <string>

namespace pumice {

std::string md5_of_file(const std::filesystem::path& path);  // 32 hex digits
std::string sha512_base64_of_file(
    const std::filesystem::path& path);  // as package managers write it

}  // namespace pumice
