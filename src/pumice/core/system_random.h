// Randomness that nobody can repeat: for noise that has to stay unknown, and for keys.
#pragma once

#include <cstddef>
#include <string>

namespace pumice {

// Fills memory from the operating system's generator (through libsodium).
void fill_from_system(void* bytes, std::size_t size);

// `bytes` random bytes as hex digits.
std::string random_hex(std::size_t bytes);

}  // namespace pumice
