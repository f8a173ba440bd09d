// Noise after the shift: S(w) = h(w) + n, n ~ N(0, Σ), Σ = α F⁻¹ diagonal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pumice/forgetting/forgetting_summary.h"
#include "pumice/model/weight_distribution.h"

namespace pumice {

// F: diagonal Fisher information at h(w) over Dr.
enum class NoiseShape {
  // 1/(F + ε), at most `cap` if one is given.
  fisher,
  // What the published numbers used: 1/(F + 1e-8), at most 1e3 (1e2 in the last layer), averaged
  // over each tensor's second axis, then ×10 in the last layer and in one-dimensional tensors.
  paper,
};
NoiseShape noise_shape_named(const std::string& name);  // throws Error with the known names
std::string noise_shape_name(NoiseShape shape);

struct NoiseOptions {
  double scale = 0;  // α; 0: no noise
  NoiseShape shape = NoiseShape::fisher;
  double epsilon = 1e-8;           // of shape fisher
  std::optional<double> cap = {};  // of shape fisher, before α
  std::optional<std::uint64_t> seed =
      {};  // for experiments; default: the operating system, unrepeatable
};

// Throws Error with option, value and rule.
void check(const NoiseOptions& options);

// α·shape(F): p values, float64. `fisher` has p values in the order of the layout; the last layer
// are the tensors with `classes` rows from the last matrix on.
at::Tensor noise_variance(const at::Tensor& fisher, const WeightLayout& layout,
                          std::int64_t classes, const NoiseOptions& options);

// One draw. Without a seed the noise comes from the operating system and cannot be repeated: who
// knows the noise can subtract it. Normal deviates by Box and Muller in float64, so tails end at
// about 8.6 standard deviations.
Weights draw(const WeightDistribution& distribution, std::optional<std::uint64_t> seed);

NoiseSummary summarize(const NoiseOptions& options, const WeightDistribution& distribution);

}  // namespace pumice
