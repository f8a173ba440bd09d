// From the signals of one layer to its part of the kernel: Θ[(i,s),(j,s')] += <Bᵢₛᵀ Aᵢ, Bⱼₛ'ᵀ Aⱼ>.
//
// For one group: A is T×K (patches, shared by all seeds s of an example), Bₛ is T×O (output
// gradients). The three ways to the same number, with their multiplications for one pair of
// examples (S seeds each):
//   explicit_rows  write down G = Bᵀ A for each row, then G Gᵀ:              S² · O·K     (+
//   2·S·T·O·K an example) hadamard       Σ over positions of (A Aᵀ) ∘ (B Bᵀ): T²·K + S² · T² (O +
//   1) class_sharing  apply A Aᵀ to one side's B, then dot with the other's:     T²·K + S · T²·O +
//   S² · T·O
// linear_tail is hadamard after the patches were summed over positions, exact where output
// gradients are the same at all positions: K + S² (O + 1).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pumice/linearization/layer_table.h"

namespace pumice {

enum class Contraction { explicit_rows, hadamard, class_sharing, linear_tail };

std::string contraction_name(Contraction contraction);
// Throws Error with the known names.
Contraction contraction_named(const std::string& name);

// Signals of one layer for a block of n examples.
struct StoredSignals {
  std::vector<at::Tensor> inputs;  // by use: n × input_size
  at::Tensor gradients;            // n × T × S × O
};

// The signals after summing patches over positions, and the layer that they then are signals of (T
// = 1).
Layer pooled_layer(const Layer& layer);
// inputs of one chunk (by use) → n × (groups·K)
at::Tensor pooled_patches(const Layer& layer, const std::vector<at::Tensor>& inputs);

// Rows G of a range of examples and columns: (n·S) × (O·range.width()), columns in the order
// [O][tap][channel]. 2·S·T·O·K FLOPs an example.
void form_rows(const Layer& layer, const StoredSignals& signals, const PatchRange& range,
               at::Tensor& rows);

// The same, one example at a time in a buffer that stays in the cache: visit(example, rows) with S
// rows, which it may change. Called on all threads, once for each example. float and double.
template <typename Scalar>
void visit_rows(const Layer& layer, const StoredSignals& signals, const PatchRange& range,
                const std::function<void(std::int64_t example, Scalar* rows)>& visit);

// The columns of a layer in panels of about `width` columns (never less than one channel of one
// tap): whole taps where they fit.
std::vector<PatchRange> column_panels(const Layer& layer, std::int64_t width);
// The part of a vector over all columns that belongs to a panel: as a view [O][tap][channel], and
// as one flat vector.
at::Tensor range_view(const Layer& layer, const at::Tensor& columns, const PatchRange& range);
at::Tensor in_range(const Layer& layer, const at::Tensor& columns, const PatchRange& range);

// Adds to `sum` ((n·S) × (m·S), in the precision of the signals). With left == right only the lower
// triangle (blocks of one example whole) is computed; what lies above it is undefined. `workspace`
// bytes bound what is allocated on the way, as far as one example on each side allows. `scale`: if
// given, one factor for each column
// ([O][tap][channel]) of the rows; only for explicit_rows.
struct ContractionOptions {
  std::int64_t workspace = std::int64_t{256} << 20;
  std::optional<at::Tensor> scale = {};
};
void contract(const Layer& layer, Contraction contraction, const StoredSignals& left,
              const StoredSignals& right, const ContractionOptions& options, at::Tensor& sum);

// The smallest workspace that contract() can keep to.
std::int64_t minimal_workspace(const Layer& layer, Contraction contraction, std::int64_t seeds,
                               std::int64_t left_examples, std::int64_t right_examples,
                               std::int64_t scalar_size);

// Class sharing takes A_i A_jᵀ from products of pixels, summed over taps, where that is at least
// twice cheaper than products of patches: strides of 1, one use. For one pair and group: FLOPs of
// the products, and additions over taps (0 where patches are multiplied).
double sharing_product_flops(const Layer& layer);
double tap_sums(const Layer& layer);

// Adds rows·rowsᵀ of rows that were written down already: left (n·S)×columns, right (m·S)×columns.
void contract_rows(const at::Tensor& left, const at::Tensor& right, at::Tensor& sum);

// Multiplications and additions of the contraction alone, for `pairs` pairs of examples with S
// seeds each (half of them where the kernel is symmetric), and of forming the rows of `examples`
// examples.
double contraction_flops(const Layer& layer, Contraction contraction, double pairs,
                         std::int64_t seeds);
double row_flops(const Layer& layer, double examples, std::int64_t seeds);

}  // namespace pumice
