// The network linearised at fixed weights: f_{w+v}(x) ≈ f_w(x) + J v. The Jacobian J is never
// stored.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pumice/linearization/kernel.h"
#include "pumice/linearization/layer_table.h"
#include "pumice/linearization/row_stream.h"
#include "pumice/linearization/tangents.h"
#include "pumice/model/model.h"

namespace pumice {

// J has N·c rows and p columns. Row = example·c + class, in the order of `inputs`; column =
// position in the flat weight vector. Results are in the precision of weights.flat, sums over
// examples and layers in float64.
class Linearization {
 public:
  // Runs a few examples to find the layers and to probe the model. Throws Error, naming what and
  // where, if weights or inputs are not finite, if the model is random (dropout), or if the logits
  // of an example depend on the others in its batch (batch norm in training mode). `model` must
  // outlive this object.
  Linearization(const Model& model, Weights weights, at::Tensor inputs);
  // Another model of the architecture that `examined` has: what was found there is taken over, and
  // nothing is examined again (which takes as long as twenty examples' kernel). Throws Error if its
  // parameters have other names or shapes.
  Linearization(const Linearization& examined, const Model& model, Weights weights,
                at::Tensor inputs);

  // The same network and weights at other inputs of the same shape, without examining them again:
  // for searches that ask at many images in turn.
  Linearization with_inputs(const at::Tensor& inputs) const;

  std::int64_t examples() const { return inputs_.size(0); }  // N
  std::int64_t classes() const { return table_.classes; }    // c
  std::int64_t rows() const { return examples() * classes(); }
  std::int64_t columns() const { return weights_.layout->total(); }  // p
  const Model& model() const { return model_; }
  const Weights& weights() const { return weights_; }
  const at::Tensor& inputs() const { return inputs_; }
  const LayerTable& layers() const { return table_; }
  // Parameters that no rule covers, each with the reason; empty if all are covered.
  std::vector<std::string> without_rule() const;

  // Examples of one pass through the network for logits, jvp and vjp; the result does not depend on
  // it.
  void set_batch_size(std::int64_t examples);

  at::Tensor logits() const;  // N×c
  // ∇_x Σ cotangents ∘ (f + J v), in the shape of the inputs. About nine forward passes.
  at::Tensor input_gradient(const at::Tensor& direction, const at::Tensor& cotangents) const;
  at::Tensor jvp(const at::Tensor& direction) const;  // J v: p → N×c. About two forward passes.
  at::Tensor vjp(
      const at::Tensor& cotangents) const;  // Jᵀ u: N×c → p. One training step without its update.

  // Θ = J Jᵀ, (N·c)×(N·c) in float64. Cost and memory: see the summary.
  Kernel kernel(const KernelOptions& options = {}) const;
  // J J'ᵀ with the rows of another set of examples: (N·c)×(N'·c). Both must share model and
  // weights.
  Kernel kernel(const Linearization& other, const KernelOptions& options = {}) const;
  // J_x Σ J_xᵀ for each example x, Σ diagonal (p values ≥ 0): N×c×c in float64.
  at::Tensor query_blocks(const at::Tensor& variance, const RowStreamOptions& options = {}) const;
  // The same, and the logits that it met on the way.
  NoisyAnswers noisy_answers(const at::Tensor& variance,
                             const RowStreamOptions& options = {}) const;
  // Diagonal Fisher information: mean over x of Σ_y π_y (∂ log π_y / ∂w)², p values in float64.
  at::Tensor fisher_diagonal(const RowStreamOptions& options = {}) const;
  // Σ over rows of their squares, p values in float64: the diagonal of Jᵀ J, or of Jᵀ H J with
  // seeds Rᵀ (N×S×c, see KernelOptions).
  at::Tensor sum_of_squared_rows(const std::optional<at::Tensor>& seeds = {},
                                 const RowStreamOptions& options = {}) const;
  // How directional derivatives are taken; found at the first call.
  TangentMode tangent_mode() const;
  // FLOPs of convolutions and linear layers for one example forwards; a training step takes three
  // times as many.
  double forward_flops() const { return passing_flops(table_, 0, 0); }

 private:
  void check();
  Examples view(const std::optional<at::Tensor>& seeds) const;

  const Model& model_;
  Weights weights_;
  at::Tensor inputs_;
  LayerTable table_;
  std::int64_t batch_size_ = 64;
  // Found at the first tangent, for all that came from one another by with_inputs.
  std::shared_ptr<std::optional<TangentMode>> tangent_mode_ =
      std::make_shared<std::optional<TangentMode>>();
};

}  // namespace pumice
