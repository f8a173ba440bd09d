#include "pumice/core/system_random.h"

#include <sodium.h>

#include <vector>

#include "pumice/core/error.h"

namespace pumice {

void fill_from_system(void* bytes, std::size_t size) {
  if (sodium_init() < 0) fail("randomness: the system's generator cannot be opened");
  randombytes_buf(bytes, size);
}

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  fill_from_system(raw.data(), raw.size());
  std::string hex(2 * bytes + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), raw.data(), raw.size());
  hex.pop_back();
  return hex;
}

}  // namespace pumice
