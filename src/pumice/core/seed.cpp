#include "pumice/core/seed.h"

#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

#include "pumice/core/digest.h"

namespace pumice {

std::uint64_t stream_seed(std::uint64_t seed, std::string_view name) {
  Digest digest;
  digest.add_number(seed);
  digest.add_text(name);
  const std::string hex = digest.hex();
  return std::stoull(hex.substr(0, 16), nullptr, 16);
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : generator_(stream_seed(seed, name)) {}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  assert(bound > 0);
  const std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t accepted = largest - largest % bound;  // a multiple of bound
  std::uint64_t value = next();
  while (value >= accepted) value = next();
  return value % bound;
}

std::vector<std::int64_t> RandomStream::permutation(std::int64_t size) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t last = order.size(); last > 1; --last) {
    std::swap(order[last - 1], order[below(last)]);
  }
  return order;
}

}  // namespace pumice
