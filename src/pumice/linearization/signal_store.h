// Runs examples through the network and keeps what the parts of a kernel need of them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "pumice/linearization/contraction.h"
#include "pumice/linearization/kernel_plan.h"
#include "pumice/linearization/layer_table.h"

namespace pumice {

// A set of examples seen through a model: what every gradient is taken of. With seeds s of example
// i, row (i, s) is the gradient of Σ_c seeds[i,s,c]·f_c(x_i). No seeds: one row for each class.
struct Examples {
  const Model& model;
  const Weights& weights;
  at::Tensor inputs;  // N × C × H × W
  const LayerTable& table;
  std::optional<at::Tensor> seeds;  // N × S × c

  std::int64_t count() const { return inputs.size(0); }
  std::int64_t rows_each() const { return seeds ? seeds->size(1) : table.classes; }
};

// What is kept of one part for a block of n examples: either rows (n·S)×columns, or signals.
struct StoredPart {
  at::Tensor rows;
  StoredSignals signals;
};

// Gathers examples [begin, end) for `parts`, `chunk` at a time. `factors`: if defined, the column
// factors (√Σ) in the order of the flat vector, applied to everything that is stored as rows.
// `after_chunk` is called after each chunk with its logits (n×c). Throws Error that names the layer
// and the example if a gradient is not finite.
std::vector<StoredPart> gather(const Examples& examples, std::int64_t begin, std::int64_t end,
                               const std::vector<KernelPart>& parts, std::int64_t chunk,
                               const at::Tensor& factors,
                               const std::function<void(const at::Tensor& logits)>& after_chunk);

// Factors of one entry or block of columns, taken from the flat vector.
at::Tensor layer_factors(const Layer& layer, const WeightLayout& layout, const at::Tensor& flat);
at::Tensor block_factors(const ColumnBlock& block, const WeightLayout& layout,
                         const at::Tensor& flat);

}  // namespace pumice
