// The rows of the Jacobian, a few examples and columns at a time, for sums that need each row only
// once.
#pragma once

#include <functional>

#include "pumice/linearization/signal_store.h"

namespace pumice {

// Rows (n·S)×w of a few examples; columns belong to one layer ([O][tap][channel] within `range`) or
// to one block.
struct RowPanel {
  std::int64_t first_example = 0;
  std::int64_t examples = 0;
  const Layer* layer = nullptr;
  PatchRange range;
  const ColumnBlock* block = nullptr;
  at::Tensor rows;
};

struct RowStreamOptions {
  std::optional<std::int64_t>
      memory;  // default: half of what is free; more than 256 MiB does not help
  std::function<void(double share)> progress = {};
};

// Visits every row and column once: 2·S·T·p FLOPs an example, plus the passes through the network.
void stream_rows(const Examples& examples, const RowStreamOptions& options,
                 const std::function<void(const RowPanel&)>& visit);

// The factors of a panel's columns, from a flat vector of p values.
at::Tensor panel_factors(const RowPanel& panel, const WeightLayout& layout, const at::Tensor& flat);

// Throws Error unless `variance` has p finite values ≥ 0.
void check_variance(const at::Tensor& variance, std::int64_t weights);

// Blocks J_i Σ J_iᵀ, N × S × S in float64; Σ diagonal, p values ≥ 0.
at::Tensor query_blocks(const Examples& examples, const at::Tensor& variance,
                        const RowStreamOptions& options);

// Σ over examples and rows of the squared rows: p values in float64.
at::Tensor sum_of_squares(const Examples& examples, const RowStreamOptions& options);

}  // namespace pumice
