// Weights that are known up to Gaussian noise: what every forgetting method returns, and all that a
// bound needs.
#pragma once

#include <filesystem>

#include "pumice/model/weights.h"

namespace pumice {

// N(mean, diag(variance)). Deterministic weights have no variance tensor at all, so that "no noise"
// cannot be mistaken for "very little".
struct WeightDistribution {
  Weights mean;
  at::Tensor variance;  // p values >= 0 in float64, or undefined: no noise

  bool deterministic() const { return !variance.defined(); }
};

// As safetensors: "mean.<name>" (float32) and "variance.<name>" (float64) for every parameter. The
// file is marked private: its mean is the model without its noise, and whoever has it can undo the
// protection of a released sample.
void write_distribution(const std::filesystem::path& path, const WeightDistribution& distribution);
// Throws Error with the file's name unless names and shapes are those of `layout`.
WeightDistribution read_distribution(const std::filesystem::path& path,
                                     std::shared_ptr<const WeightLayout> layout);

}  // namespace pumice
