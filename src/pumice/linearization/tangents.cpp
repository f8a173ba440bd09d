#include "pumice/linearization/tangents.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <iterator>

#include "pumice/linearization/workers.h"

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
                                 const at::Tensor& direction, const at::Tensor& inputs,
                                 const TangentLevel& level) {
  const Weights dual{weights.layout, at::_make_dual(weights.flat, direction, level.index())};
  const at::Tensor logits = model.logits(dual, inputs);
  const auto [value, change] = at::_unpack_dual(logits, level.index());
  // A copy: the tangent's memory goes with the level.
  return {value, change.defined() ? change.clone() : at::zeros_like(value)};
}

// p values, with respect to `flat`; zeros if the logits do not depend on it.
at::Tensor gradient_of(const at::Tensor& logits, const at::Tensor& cotangents,
                       const at::Tensor& flat) {
  if (!logits.requires_grad()) return at::zeros_like(flat);
  return torch::autograd::grad({logits}, {flat}, {cotangents.to(logits.scalar_type())})[0];
}

// Σ over workers of what each finds for its own examples, gradients on.
at::Tensor sum_over_workers(std::int64_t examples,
                            const std::function<at::Tensor(const WorkerShare&)>& part) {
  std::vector<at::Tensor> parts(static_cast<std::size_t>(workers_for(examples)));
  for_each_worker(examples, std::ssize(parts), [&](const WorkerShare& own) {
    at::AutoGradMode with_gradient(true);
    parts[static_cast<std::size_t>(own.worker)] = part(own);
  });
  for (std::size_t i = 1; i < parts.size(); ++i) parts[0].add_(parts[i]);
  return parts[0];
}

}  // namespace

at::Tensor tangent_logits(const Model& model, const Weights& weights, const at::Tensor& direction,
                          const at::Tensor& inputs, TangentMode mode) {
  const at::Tensor tangent = direction.to(weights.flat.scalar_type());
  if (mode == TangentMode::double_backward) {
    return by_double_backward(model, weights, tangent, inputs, /*keep_graph=*/false).tangent;
  }
  std::vector<at::Tensor> tangents(static_cast<std::size_t>(workers_for(inputs.size(0))));
  const TangentLevel level;  // LibTorch has one at a time, for all threads
  for_each_worker(inputs.size(0), std::ssize(tangents), [&](const WorkerShare& own) {
    at::AutoGradMode without_gradient(false);
    tangents[static_cast<std::size_t>(own.worker)] =
        by_forward_mode(model, weights, tangent, inputs.narrow(0, own.begin, own.count()), level)
            .tangent;
  });
  return at::cat(tangents);
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
  LogitsAndTangent both;
  if (mode == TangentMode::forward) {
    const TangentLevel level;  // closed before the way back, which would be differentiated as well
    both = by_forward_mode(model, weights, typed, leaf, level);
  } else {
    both = by_double_backward(model, weights, typed, leaf, /*keep_graph=*/true);
  }
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
  return sum_over_workers(inputs.size(0), [&](const WorkerShare& own) {
    const Weights leaf{weights.layout, weights.flat.detach().requires_grad_()};
    const at::Tensor logits = model.logits(leaf, inputs.narrow(0, own.begin, own.count()));
    return gradient_of(logits, cotangents.narrow(0, own.begin, own.count()), leaf.flat);
  });
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
  struct Forwards {
    at::Tensor leaf, logits, curved;
  };
  std::vector<Forwards> forwards(static_cast<std::size_t>(workers_for(inputs.size(0))));
  {
    const TangentLevel level;
    for_each_worker(inputs.size(0), std::ssize(forwards), [&](const WorkerShare& own) {
      at::AutoGradMode with_gradient(true);
      Forwards& here = forwards[static_cast<std::size_t>(own.worker)];
      here.leaf = weights.flat.detach().requires_grad_();
      const LogitsAndTangent both =
          by_forward_mode(model, {weights.layout, here.leaf}, typed,
                          inputs.narrow(0, own.begin, own.count()), level);
      here.logits = both.logits;
      here.curved = curvature(both.logits.detach(), both.tangent.detach());
    });
  }
  // The level is closed and the tangents are gone, or the way back would be differentiated as well.
  return sum_over_workers(inputs.size(0), [&](const WorkerShare& own) {
    const Forwards here = std::move(forwards[static_cast<std::size_t>(own.worker)]);
    return gradient_of(here.logits, here.curved, here.leaf);
  });
}

}  // namespace pumice
