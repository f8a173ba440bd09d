#include "pumice/data/checksum.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "pumice/core/error.h"

namespace pumice {
namespace {

std::vector<unsigned char> checksum(const std::filesystem::path& path, const EVP_MD* method) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path.string(), ": cannot be read, ", std::strerror(errno));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  // MD5 may be switched off by the system's policy.
  if (!context || EVP_DigestInit_ex(context.get(), method, nullptr) != 1) {
    fail(path.string(), ": its checksum cannot be computed, OpenSSL refuses");
  }
  std::vector<char> buffer(1 << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) fail(path.string(), ": cannot be read to its end");
  std::vector<unsigned char> value(EVP_MAX_MD_SIZE);
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), value.data(), &size);
  value.resize(size);
  return value;
}

}  // namespace

std::string md5_of_file(const std::filesystem::path& path) {
  std::string result;
  for (const unsigned char byte : checksum(path, EVP_md5())) {
    result += "0123456789abcdef"[byte >> 4];
    result += "0123456789abcdef"[byte & 15];
  }
  return result;
}

std::string sha512_base64_of_file(const std::filesystem::path& path) {
  const std::vector<unsigned char> value = checksum(path, EVP_sha512());
  std::vector<unsigned char> encoded(4 * ((value.size() + 2) / 3) + 1);
  const int size = EVP_EncodeBlock(encoded.data(), value.data(), static_cast<int>(value.size()));
  return {encoded.begin(), encoded.begin() + size};
}

}  // namespace pumice
