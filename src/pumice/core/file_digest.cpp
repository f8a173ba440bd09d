#include "pumice/core/file_digest.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"

namespace pumice {

std::string file_digest(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path.string(), ": cannot be read, ", std::strerror(errno));
  Digest digest;
  std::vector<char> block(1 << 20);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    digest.add_bytes(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof()) fail(path.string(), ": cannot be read to its end");
  return digest.label();
}

}  // namespace pumice
