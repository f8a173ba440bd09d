// The dense kernel Θ = J Jᵀ without the Jacobian.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/linearization/contraction.h"
#include "pumice/linearization/signal_store.h"

namespace pumice {

struct KernelOptions {
  // Bytes that the computation may take, the result included. Default: half of what is free.
  std::optional<std::int64_t> memory = {};
  // J Σ Jᵀ instead of J Jᵀ, Σ diagonal: p values ≥ 0. Every layer then takes explicit rows.
  std::optional<at::Tensor> variance = {};
  // N×S×c: row (i, s) is the gradient of Σ_c seeds[i,s,c]·f_c(x_i) instead of row (i, c) of J. With
  // H = R Rᵀ block by block, seeds = Rᵀ gives the Gauss-Newton kernel Rᵀ Θ R. For the right side of
  // a rectangular kernel: `right_seeds`.
  std::optional<at::Tensor> seeds = {}, right_seeds = {};
  // For tests and benchmarks: use this contraction wherever it is exact; examples of one forward
  // pass.
  std::optional<Contraction> contraction = {};
  std::optional<std::int64_t> chunk = {};
  // For a part of a larger symmetric kernel: contractions as all these examples together would take
  // them. Another contraction rounds differently, which an ill-conditioned solve makes visible.
  std::optional<std::int64_t> part_of = {};
  // Told now and then which share of the work is done; may throw to give up.
  std::function<void(double share)> progress = {};
};

// What was done for one layer (or for all biases and norms, or all parameters without a rule).
struct KernelLayerSummary {
  std::string name;
  std::string operation;
  std::int64_t positions = 0, columns = 0, outputs = 0,
               groups = 1;  // T, K, O; 0 where they mean nothing
  std::string contraction;
  std::int64_t parameters = 0;
  std::int64_t bytes_per_example = 0;  // kept until the contraction
  double flops = 0;
  double forecast = 0, seconds = 0;  // of the contraction
};

struct KernelSummary {
  std::int64_t rows = 0, columns = 0, weights = 0;
  std::vector<KernelLayerSummary> layers;
  std::vector<std::string> slow;  // "name: why it has no rule"
  std::int64_t passes = 0, blocks = 0, chunk = 0;
  std::int64_t planned_bytes = 0, memory = 0;
  double signal_flops = 0, signal_seconds = 0;
  double forecast = 0, seconds = 0;
  double product_rate = 0;  // FLOP/s of a large product, measured beforehand

  double flops() const;
  std::string brief() const;  // one line
  std::string full() const;   // a table of layers, and what limits it
};
nlohmann::json to_json(const KernelSummary& summary);

struct Kernel {
  at::Tensor theta;  // rows × columns, float64; row = example·S + seed (class)
  KernelSummary summary;
};

// Both sides share model and weights. `right` null: symmetric.
Kernel compute_kernel(const Examples& left, const Examples* right, const KernelOptions& options);

// The upper triangle from the lower one. In place, tile by tile: a copy would be as large as the
// kernel.
void mirror_lower_triangle(at::Tensor& matrix);

}  // namespace pumice
