// Layer signals: what each layer read, and the gradient that arrives at its output, for every
// example of a chunk at once. This pair of files is the only one that knows autograd's internals.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pumice/linearization/unfolding.h"
#include "pumice/model/model.h"

namespace pumice {

// One application of a weight matrix: convolution, linear layer, embedding. With patches A (T×K)
// and output gradients B (T×O) of one example and group, the gradient with respect to the weight is
// Bᵀ A (O×K).
struct MatrixUse {
  std::size_t entry = 0;  // of the weight layout
  std::string operation;  // "convolution", "linear", "embedding"
  Unfolding unfolding;
  std::int64_t outputs = 0;       // O, all groups together
  bool inputs_first = false;      // the entry is stored K×O rather than O×K
  bool linear_to_logits = false;  // only linear operations with fixed coefficients follow
  at::Tensor input;               // n × unfolding.input_size(), channels last
  std::size_t capture = 0;        // which output gradient belongs to it

  std::int64_t positions() const { return unfolding.positions(); }
};

// One application of a parameter whose gradient is cheap enough to write down at once: bias, shift
// and scale of a norm, a broadcast summand.
struct VectorUse {
  std::size_t entry = 0;
  std::string operation;
  std::size_t capture = 0;
  // output gradient as captured → gradient with respect to the parameter, n × count
  std::function<at::Tensor(const at::Tensor&)> gradient;
};

// A parameter that some operation uses in a way no rule covers.
struct WithoutRule {
  std::size_t entry = 0;
  std::string reason;
};

// One forward pass, kept for any number of backward passes. Rules: convolution (stride, padding,
// dilation, groups, bias; 1 to 3 axes), linear (addmm, mm), batch norm in evaluation mode, layer
// norm, group norm, embedding, sums with a broadcast parameter. A parameter used several times
// appears several times.
class LayerSignals {
 public:
  // Throws Error if batch norm runs in training mode.
  LayerSignals(const Model& model, const Weights& weights, const at::Tensor& inputs);
  ~LayerSignals();
  LayerSignals(const LayerSignals&) = delete;
  LayerSignals& operator=(const LayerSignals&) = delete;

  const at::Tensor& logits() const;  // n × c
  const std::vector<MatrixUse>& matrix_uses() const { return matrix_uses_; }
  const std::vector<VectorUse>& vector_uses() const { return vector_uses_; }
  const std::vector<WithoutRule>& without_rule() const { return without_rule_; }
  std::size_t captures() const;

  // One backward pass from Σ seeds ∘ logits (seeds n×c) that stops at the deepest wanted layer and
  // computes no weight gradient. Result: one tensor for each element of `captures`, in the shape of
  // the layer's output; zero where the logits do not depend on it.
  std::vector<at::Tensor> output_gradients(const at::Tensor& seeds,
                                           const std::vector<std::size_t>& captures) const;
  // The output gradient of a matrix use, n × T × O.
  static at::Tensor by_position(const MatrixUse& use, const at::Tensor& output_gradient);

  // The slow exact way, not to be mixed with output_gradients() on one object: gradients of Σ seeds
  // ∘ logits with respect to whole entries, summed over the chunk.
  std::vector<at::Tensor> entry_gradients(const at::Tensor& seeds,
                                          const std::vector<std::size_t>& entries) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
  std::vector<MatrixUse> matrix_uses_;
  std::vector<VectorUse> vector_uses_;
  std::vector<WithoutRule> without_rule_;
};

}  // namespace pumice
