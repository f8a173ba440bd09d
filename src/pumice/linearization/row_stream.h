// The rows of the Jacobian, a few examples and columns at a time, for sums that need each row only
// once.
#pragma once

#include <functional>

#include "pumice/linearization/signal_store.h"

namespace pumice {

// Rows (n·S)×w of a few examples; columns belong to one layer ([O][tap][channel] within `range`) or
// to one block. Formed when they are visited.
struct RowPanel {
  std::int64_t first_example = 0;
  std::int64_t examples = 0;  // n
  std::int64_t worker = 0;    // which thread's
  const Layer* layer = nullptr;
  PatchRange range;
  const StoredSignals* signals = nullptr;  // of a layer
  const ColumnBlock* block = nullptr;
  at::Tensor rows;               // of a block
  std::int64_t columns() const;  // w

  // visit(i, rows) for each of the n examples, with its S×w rows, which it may change: the layer's
  // are formed in a buffer that stays in the cache. float or double, whichever the signals are.
  template <typename Scalar>
  void for_each(const std::function<void(std::int64_t example, Scalar* rows)>& visit) const;
};

struct RowStreamOptions {
  std::optional<std::int64_t>
      memory;  // default: half of what is free; more than 256 MiB does not help
  std::function<void(double share)> progress = {};
};

// Visits every row and column once: 2·S·T·p FLOPs an example, plus the passes through the network.
// `visit` is called by several threads at once, each with examples of its own; `visit_logits`, by
// one at a time, with what the network answered (n×c) to examples `first` to first + n.
void stream_rows(
    const Examples& examples, const RowStreamOptions& options,
    const std::function<void(const RowPanel&)>& visit,
    const std::function<void(std::int64_t first, const at::Tensor& logits)>& visit_logits = {});

// The factors of every panel's columns, from a flat vector of p values: brought into the layers'
// order of columns once, since that costs more than using them.
class PanelFactors {
 public:
  // Refers to `table`, which has to live longer.
  PanelFactors(const LayerTable& table, const WeightLayout& layout, const at::Tensor& flat);
  at::Tensor of(const RowPanel& panel) const;

 private:
  const LayerTable& table_;
  std::vector<at::Tensor> layers_;
  at::Tensor vectors_, slow_;
};

// Throws Error unless `variance` has p finite values ≥ 0.
void check_variance(const at::Tensor& variance, std::int64_t weights);

// The answers of the network whose weights have noise of diagonal covariance Σ, to first order.
struct NoisyAnswers {
  at::Tensor logits;      // N×c in float64, at the mean
  at::Tensor covariance;  // J_i Σ J_iᵀ of each example, N×S×S in float64
};
// `variance`: p values ≥ 0.
NoisyAnswers noisy_answers(const Examples& examples, const at::Tensor& variance,
                           const RowStreamOptions& options);

// Σ over examples and rows of the squared rows: p values in float64.
at::Tensor sum_of_squares(const Examples& examples, const RowStreamOptions& options);

}  // namespace pumice
