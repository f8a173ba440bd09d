// Randomness: every use draws from its own named stream of one seed.
//
// stream(seed, name) starts from BLAKE2b(seed, name), so that streams neither overlap nor shift
// each other: drawing one more cohort example does not change the head. The generator is the
// standard's mt19937_64 and the distributions are written here, so the same seed gives the same
// draws on every platform (the standard leaves std::uniform_int_distribution open).
//
// Names in use: "subset/<part>/<class>", "cohort", "replacement", "head", "body", "order/<epoch>",
// "augmentation/<epoch>", "relearn/<epoch>", "bootstrap", "relabelling", "klom",
// "preconditioner", "neighbours", "probe", "noise"
// (experiments only), "lacuna", "lacuna/<identity>"; seeds derived from seeds: "reference/<i>",
// "shadow/<kind>/<i>", "cohort/<i>", "noise/<cohort>/<method>".
#pragma once

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace pumice {

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name);

  std::uint64_t next() { return generator_(); }
  // Uniform in [0, bound), bound > 0, by rejection (no modulo bias).
  std::uint64_t below(std::uint64_t bound);
  // Fisher-Yates shuffle of 0 … size-1.
  std::vector<std::int64_t> permutation(std::int64_t size);

 private:
  std::mt19937_64 generator_;
};

// A seed for a foreign generator (LibTorch's), from the same named streams.
std::uint64_t stream_seed(std::uint64_t seed, std::string_view name);

}  // namespace pumice
