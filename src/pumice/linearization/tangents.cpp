#include "pumice/linearization/tangents.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>

namespace pumice {
namespace {

// One level of forward-mode differentiation, given back when it goes out of scope.
class TangentLevel {
 public:
  TangentLevel() : index_(torch::autograd::ForwardADLevel::get_next_idx()) {}
  ~TangentLevel() { torch::autograd::ForwardADLevel::release_idx(index_); }
  TangentLevel(const TangentLevel&) = delete;
  TangentLevel& operator=(const TangentLevel&) = delete;
  std::int64_t index() const { return static_cast<std::int64_t>(index_); }

 private:
  std::uint64_t index_;
};

struct LogitsAndTangent {
  at::Tensor logits, tangent;  // n×c each
};

// Jᵀu is linear in u; differentiating it once more in direction v gives J v.
LogitsAndTangent by_double_backward(const Model& model, const Weights& weights,
                                    const at::Tensor& direction, const at::Tensor& inputs,
                                    bool keep_graph) {
  at::AutoGradMode with_gradient(true);
  const Weights leaf{weights.layout, weights.flat.detach().requires_grad_()};
  const at::Tensor logits = model.logits(leaf, inputs);
  const at::Tensor cotangents = at::zeros_like(logits).requires_grad_();
  const at::Tensor pulled = torch::autograd::grad({logits}, {leaf.flat}, {cotangents},
                                                  /*retain_graph=*/true, /*create_graph=*/true)[0];
  return {logits, torch::autograd::grad({pulled}, {cotangents}, {direction}, keep_graph,
                                        /*create_graph=*/keep_graph)[0]};
}

// In the caller's gradient mode: with gradients on, both can be differentiated by whichever of
// inputs and weights requires it.
LogitsAndTangent by_forward_mode(const Model& model, const Weights& weights,
                                 const at::Tensor& direction, const at::Tensor& inputs) {
  const TangentLevel level;
  const Weights dual{weights.layout, at::_make_dual(weights.flat, direction, level.index())};
  const at::Tensor logits = model.logits(dual, inputs);
  const auto [value, change] = at::_unpack_dual(logits, level.index());
  // A copy: the tangent's memory goes with the level.
  return {value, change.defined() ? change.clone() : at::zeros_like(value)};
}

}  // namespace

at::Tensor tangent_logits(const Model& model, const Weights& weights, const at::Tensor& direction,
                          const at::Tensor& inputs, TangentMode mode) {
  const at::Tensor tangent = direction.to(weights.flat.scalar_type());
  if (mode == TangentMode::double_backward) {
    return by_double_backward(model, weights, tangent, inputs, /*keep_graph=*/false).tangent;
  }
  at::AutoGradMode without_gradient(false);
  return by_forward_mode(model, weights, tangent, inputs).tangent;
}

at::Tensor input_gradient(const Model& model, const Weights& weights, const at::Tensor& cotangents,
                          const at::Tensor& inputs) {
  at::AutoGradMode with_gradient(true);
  const at::Tensor leaf = inputs.detach().clone().requires_grad_();
  const at::Tensor logits = model.logits({weights.layout, weights.flat.detach()}, leaf);
  return torch::autograd::grad({logits}, {leaf}, {cotangents.to(logits.scalar_type())})[0];
}

at::Tensor input_gradient(const Model& model, const Weights& weights, const at::Tensor& direction,
                          const at::Tensor& cotangents, const at::Tensor& inputs,
                          TangentMode mode) {
  at::AutoGradMode with_gradient(true);
  const at::Tensor leaf = inputs.detach().clone().requires_grad_();
  const at::Tensor typed = direction.to(weights.flat.scalar_type());
  const LogitsAndTangent both =
      mode == TangentMode::forward
          ? by_forward_mode(model, weights, typed, leaf)
          : by_double_backward(model, weights, typed, leaf, /*keep_graph=*/true);
  const at::Tensor sum = both.logits + both.tangent;
  return torch::autograd::grad({sum}, {leaf}, {cotangents.to(sum.scalar_type())})[0];
}

TangentMode working_tangent_mode(const Model& model, const Weights& weights,
                                 const at::Tensor& inputs) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(11);
  const at::Tensor direction =
      at::randn({weights.layout->total()}, generator, at::kDouble).to(weights.flat.scalar_type());
  try {
    const at::Tensor forward =
        tangent_logits(model, weights, direction, inputs, TangentMode::forward);
    const at::Tensor backward =
        tangent_logits(model, weights, direction, inputs, TangentMode::double_backward);
    const double difference = (forward - backward).norm().item<double>();
    if (difference <= 1e-3 * backward.norm().item<double>()) return TangentMode::forward;
  } catch (const std::exception&) {
    // An operation without a forward rule; TorchScript wraps the reason in an exception of its own.
  }
  return TangentMode::double_backward;
}

at::Tensor pulled_back(const Model& model, const Weights& weights, const at::Tensor& cotangents,
                       const at::Tensor& inputs) {
  at::AutoGradMode with_gradient(true);
  const Weights leaf{weights.layout, weights.flat.detach().requires_grad_()};
  const at::Tensor logits = model.logits(leaf, inputs);
  if (!logits.requires_grad()) return at::zeros_like(weights.flat);
  return torch::autograd::grad({logits}, {leaf.flat}, {cotangents.to(logits.scalar_type())})[0];
}

at::Tensor gauss_newton_product(const Model& model, const Weights& weights,
                                const at::Tensor& direction, const at::Tensor& inputs,
                                const LogitMap& curvature, TangentMode mode) {
  const at::Tensor typed = direction.to(weights.flat.scalar_type());
  if (mode == TangentMode::double_backward) {
    const LogitsAndTangent both =
        by_double_backward(model, weights, typed, inputs, /*keep_graph=*/false);
    const at::Tensor curved = curvature(both.logits.detach(), both.tangent.detach());
    return pulled_back(model, weights, curved, inputs);
  }
  at::AutoGradMode with_gradient(true);
  const at::Tensor leaf = weights.flat.detach().requires_grad_();
  at::Tensor logits, curved;
  {
    const LogitsAndTangent both = by_forward_mode(model, {weights.layout, leaf}, typed, inputs);
    logits = both.logits;
    curved = curvature(both.logits.detach(), both.tangent.detach()).to(logits.scalar_type());
  }
  // The level is closed and the tangents are gone, or the way back would be differentiated as well.
  if (!logits.requires_grad()) return at::zeros_like(weights.flat);
  return torch::autograd::grad({logits}, {leaf}, {curved})[0];
}

}  // namespace pumice
