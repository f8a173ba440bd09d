// Which parameters of a network are reached by which rule, found once for a model and kept for all
// chunks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pumice/linearization/layer_signals.h"

namespace pumice {

// A weight matrix with all its uses. Tied uses add before any product: they are further positions
// of one layer, so that patches A (T×K) and output gradients B (T×O) of all uses are stacked.
struct Layer {
  std::string name;
  std::string operation;
  std::size_t entry = 0;
  std::vector<std::size_t> uses;      // positions in LayerSignals::matrix_uses()
  std::vector<Unfolding> unfoldings;  // of each use
  std::int64_t positions = 0;         // T, all uses together
  std::int64_t columns = 0;           // K, of one group
  std::int64_t outputs = 0;           // O, all groups together
  std::int64_t groups = 1;
  bool inputs_first = false;
  // Output gradients are the same at all positions (only means over positions and linear maps
  // follow): patches may be summed over positions first.
  bool pooled_linearly = false;

  std::int64_t weights() const { return outputs * columns; }
  std::int64_t input_size() const;  // values read for one example, all uses
  std::int64_t gradient_size() const { return positions * outputs; }  // for one example and class
};

// Parameters of one rule or of none, as columns side by side.
struct ColumnBlock {
  std::vector<std::size_t> entries;
  std::vector<std::int64_t> offsets;  // first column of each entry
  std::int64_t columns = 0;
};

struct LayerTable {
  std::vector<Layer> layers;              // from the logits to the input
  ColumnBlock vectors;                    // biases, scales and shifts
  std::vector<std::size_t> vector_uses;   // positions in LayerSignals::vector_uses() that count
  ColumnBlock slow;                       // parameters without a rule
  std::vector<std::string> slow_reasons;  // by element of slow.entries
  std::size_t matrix_use_count = 0;
  std::size_t capture_count = 0;
  std::int64_t classes = 0;
};

// Follows `inputs` (a few examples) through the model. Every rule is then checked against autograd,
// one example alone, in float64 where the model can (within 1e-6 of the gradient's norm), else in
// float32 (5 %, since long sums cancel). A parameter that fails is treated as one without a rule,
// so that a model that mixes up examples and positions is slow, never wrong. Parameters that the
// logits do not depend on appear nowhere.
LayerTable read_layers(const Model& model, const Weights& weights, const at::Tensor& inputs);

// Parameters without a rule, each with the reason: "name: why".
std::vector<std::string> without_rule(const LayerTable& table, const WeightLayout& layout);

// Gradients Bᵀ A of one layer for one example and one seed, in the order of the layout's entry:
// count. `gradient` is T×O, the inputs are those of the layer's uses for this example.
at::Tensor entry_gradient(const Layer& layer, const std::vector<at::Tensor>& inputs,
                          const at::Tensor& gradient);

// From the engine's order of a layer's columns ([O][tap][channel]) to the order of its entry, and
// back.
at::Tensor to_entry_order(const Layer& layer, const at::Tensor& columns);
at::Tensor from_entry_order(const Layer& layer, const at::Tensor& entry);

// Fails with a clear sentence if a later chunk took another way through the model.
void check_same_graph(const LayerTable& table, const LayerSignals& signals);

}  // namespace pumice
