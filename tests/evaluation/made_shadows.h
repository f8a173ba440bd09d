// Margins of shadow models that never were: normal, with a known difference between the two kinds.
#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include "pumice/core/seed.h"
#include "pumice/evaluation/shadow_attack.h"

namespace pumice::testing {

struct MadeShadows {
  std::int64_t unlearned = 8, never_saw = 8, examples = 25;
  double shift = 0;   // of the unlearned models' margins
  double spread = 1;  // standard deviation of the unlearned models' margins; 1 for the others
  double shared = 0;  // standard deviation of what all margins of a model have in common
};

// Each example has its own level, which says nothing.
inline MarginTable make_shadows(const MadeShadows& made, std::int64_t seed) {
  torch::manual_seed(seed);
  const at::Tensor level = 2 * torch::randn({made.examples}, at::kDouble);
  const auto table = [&](std::int64_t models) {
    return torch::randn({models, made.examples}, at::kDouble) +
           made.shared * torch::randn({models, 1}, at::kDouble);
  };
  const at::Tensor unlearned = made.spread * table(made.unlearned) + made.shift + level;
  return {unlearned, table(made.never_saw) + level};
}

inline at::Tensor random_order(std::int64_t size, std::uint64_t seed) {
  return at::tensor(RandomStream(seed, "shuffle").permutation(size), at::kLong);
}

}  // namespace pumice::testing
