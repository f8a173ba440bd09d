// Derivatives of a batch's logits along a direction of the weights, and back again.
#pragma once

#include <ATen/ATen.h>

#include <functional>

#include "pumice/model/model.h"

namespace pumice {

// Forward-mode automatic differentiation (one pass of about twice the cost of logits()), or two
// backward passes.
enum class TangentMode { forward, double_backward };

// Directional derivative of the logits, d/dε f_{w+εv}(x) at ε = 0: n×c.
at::Tensor tangent_logits(const Model& model, const Weights& weights, const at::Tensor& direction,
                          const at::Tensor& inputs, TangentMode mode);

// ∇_x Σ cotangents ∘ f_w(x), in the shape of the inputs; cotangents n×c.
at::Tensor input_gradient(const Model& model, const Weights& weights, const at::Tensor& cotangents,
                          const at::Tensor& inputs);
// ∇_x Σ cotangents ∘ (f_w(x) + d/dε f_{w+εv}(x)): of the logits and their directional derivative
// together. In forward mode all its convolutions are ordinary ones, about nine forward passes.
at::Tensor input_gradient(const Model& model, const Weights& weights, const at::Tensor& direction,
                          const at::Tensor& cotangents, const at::Tensor& inputs, TangentMode mode);

// Forward mode if the model's operations all have a forward rule and it agrees with backward mode
// on `inputs` (an embedding's padding index, for one, gets a tangent but no gradient); else double
// backward.
TangentMode working_tangent_mode(const Model& model, const Weights& weights,
                                 const at::Tensor& inputs);

// Σ cotangents ∘ logits differentiated with respect to the weights: Jᵀ applied to n×c values, p.
at::Tensor pulled_back(const Model& model, const Weights& weights, const at::Tensor& cotangents,
                       const at::Tensor& inputs);

// A linear map of each example's logits that depends on where they are: (f, x) → H(f) x, n×c each.
using LogitMap = std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& x)>;

// Jᵀ H J v of one batch, p values, in one pass: forwards with its tangent, H, backwards. Five
// forward passes' work, against six of tangent_logits() and pulled_back(), which both run the
// network forwards. Autograd also records the tangent's way, so that an example keeps about twice
// the memory of a training step. In mode double_backward: the tangent first, then back.
at::Tensor gauss_newton_product(const Model& model, const Weights& weights,
                                const at::Tensor& direction, const at::Tensor& inputs,
                                const LogitMap& curvature, TangentMode mode);

}  // namespace pumice
