#include "pumice/core/digest.h"

#include <sodium.h>

#include <array>
#include <stdexcept>

namespace pumice {

struct Digest::State {
  crypto_generichash_state hash;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  if (sodium_init() < 0) throw std::runtime_error("libsodium could not be initialised");
  crypto_generichash_init(&state_->hash, nullptr, 0, crypto_generichash_BYTES);
}

Digest::Digest(std::string_view key) : Digest() {
  if (key.size() < crypto_generichash_KEYBYTES_MIN ||
      key.size() > crypto_generichash_KEYBYTES_MAX) {
    throw std::runtime_error("a digest's key must have 16 to 64 bytes");
  }
  crypto_generichash_init(&state_->hash, reinterpret_cast<const unsigned char*>(key.data()),
                          key.size(), crypto_generichash_BYTES);
}

Digest::~Digest() = default;

void Digest::add_bytes(const void* bytes, std::size_t size) {
  crypto_generichash_update(&state_->hash, static_cast<const unsigned char*>(bytes), size);
}

void Digest::add_number(std::uint64_t value) {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(value >> (8 * i));
  add_bytes(bytes.data(), bytes.size());
}

void Digest::add_text(std::string_view value) {
  add_number(value.size());
  add_bytes(value.data(), value.size());
}

std::string Digest::hex() {
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash_final(&state_->hash, hash.data(), hash.size());
  std::string hex(2 * hash.size() + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), hash.data(), hash.size());
  hex.pop_back();
  return hex;
}

std::string Digest::label() {
  return "blake2b:" + hex();
}

}  // namespace pumice
