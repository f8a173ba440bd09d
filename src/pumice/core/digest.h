// Content digests: BLAKE2b with 256 bits, written as "blake2b:<64 hex digits>" in files and
// records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pumice {

// Feed in the parts, then ask once. add_text also feeds the length, so that ("ab","c") and
// ("a","bc") differ; add_bytes does not.
class Digest {
 public:
  Digest();
  // Keyed: who does not have the key (16 to 64 bytes) cannot confirm a guess of the content.
  explicit Digest(std::string_view key);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add_bytes(const void* bytes, std::size_t size);
  void add_text(std::string_view value);
  void add_number(std::uint64_t value);  // eight bytes, little-endian

  std::string hex();    // finishes the digest; no more parts afterwards
  std::string label();  // "blake2b:" + hex()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pumice
