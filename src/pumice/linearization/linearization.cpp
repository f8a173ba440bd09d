#include "pumice/linearization/linearization.h"

#include <torch/types.h>

#include <algorithm>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr std::int64_t probed_examples = 3;
constexpr double probe_tolerance = 1e-3;

void check_weights(const Weights& weights) {
  if (weights.flat.isfinite().all().item<bool>()) return;
  for (const auto& entry : weights.layout->entries()) {
    if (weights.flat.narrow(0, entry.offset, entry.count).isfinite().all().item<bool>()) continue;
    fail("weights: parameter '", entry.name, "' holds a value that is not finite");
  }
}

void check_inputs(const at::Tensor& inputs) {
  if (inputs.dim() < 2 || inputs.size(0) < 1) {
    fail("inputs: shape ", inputs.sizes(), ", must be N×… with N >= 1");
  }
  const at::Tensor bad = inputs.isfinite().logical_not().flatten(1).any(1);
  if (bad.any().item<bool>()) {
    fail("inputs: example ", bad.nonzero()[0][0].item<std::int64_t>(),
         " holds a value that is not finite");
  }
}

// A few examples twice in a batch, and one of them alone: the answers must agree.
void probe(const Model& model, const Weights& weights, const at::Tensor& inputs) {
  at::NoGradGuard no_gradient;
  const at::Tensor few = inputs.narrow(0, 0, std::min(probed_examples, inputs.size(0)));
  const at::Tensor first = model.logits(weights, few);
  const double size = first.abs().max().item<double>() + 1e-12;
  const at::Tensor again = model.logits(weights, few);
  if (!torch::equal(first, again) &&
      !((again - first).abs().max().item<double>() <= probe_tolerance * size)) {
    fail(
        "model: it answers differently when asked twice; is dropout on? Call eval() before saving");
  }
  // Against an example of other content: batch statistics of equal examples would not show.
  const at::Tensor alone = model.logits(weights, few.narrow(0, 0, 1));
  const at::Tensor shifted = at::cat({few.narrow(0, 0, 1), few.narrow(0, 0, 1) * -2 + 1});
  const at::Tensor beside_another = model.logits(weights, shifted).narrow(0, 0, 1);
  const double difference = (alone - beside_another).abs().max().item<double>();
  if (!(difference <= probe_tolerance * (alone.abs().max().item<double>() + 1e-12)) &&
      alone.isfinite().all().item<bool>()) {
    fail("model: the logits of an example depend on the others in its batch (they differ by ",
         difference, "); is batch norm in training mode? Call eval() before saving");
  }
}

}  // namespace

Linearization::Linearization(const Model& model, Weights weights, at::Tensor inputs)
    : model_(model), weights_(std::move(weights)), inputs_(std::move(inputs)) {
  check();
  probe(model_, weights_, inputs_);
  const at::Tensor few = inputs_.narrow(0, 0, std::min(probed_examples, inputs_.size(0)));
  table_ = read_layers(model_, weights_, few);
}

Linearization::Linearization(const Linearization& examined, const Model& model, Weights weights,
                             at::Tensor inputs)
    : model_(model),
      weights_(std::move(weights)),
      inputs_(std::move(inputs)),
      table_(examined.table_),
      batch_size_(examined.batch_size_),
      tangent_mode_(examined.tangent_mode_) {
  check();
  if (!(*weights_.layout == *examined.weights_.layout)) {
    fail("model: its parameters have other names or shapes than those of the model it is compared",
         " with");
  }
}

void Linearization::check() {
  weights_.flat = weights_.flat.detach();
  if (weights_.layout->total() != weights_.flat.numel() || !(*weights_.layout == model_.layout())) {
    fail("weights: ", weights_.flat.numel(), " values, the model has ", model_.layout().total(),
         " or other names and shapes");
  }
  check_weights(weights_);
  check_inputs(inputs_);
  if (inputs_.is_floating_point()) inputs_ = inputs_.to(weights_.flat.scalar_type());
}

Linearization Linearization::with_inputs(const at::Tensor& inputs) const {
  check_inputs(inputs);
  if (inputs.sizes().slice(1) != inputs_.sizes().slice(1)) {
    fail("inputs: shape ", inputs.sizes(), ", must be N×", inputs_.sizes().slice(1));
  }
  Linearization other(*this);
  other.inputs_ = inputs.is_floating_point() ? inputs.to(weights_.flat.scalar_type()) : inputs;
  return other;
}

std::vector<std::string> Linearization::without_rule() const {
  return pumice::without_rule(table_, *weights_.layout);
}

void Linearization::set_batch_size(std::int64_t examples) {
  if (examples < 1) fail("batch size: ", examples, ", must be >= 1");
  batch_size_ = examples;
}

at::Tensor Linearization::logits() const {
  at::NoGradGuard no_gradient;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& batch : inputs_.split(batch_size_)) {
    parts.push_back(model_.logits(weights_, batch));
  }
  return at::cat(parts);
}

at::Tensor Linearization::jvp(const at::Tensor& direction) const {
  if (direction.dim() != 1 || direction.numel() != columns()) {
    fail("jvp: direction of shape ", direction.sizes(), ", must have ", columns(), " values");
  }
  std::vector<at::Tensor> parts;
  for (const at::Tensor& batch : inputs_.split(batch_size_)) {
    parts.push_back(tangent_logits(model_, weights_, direction, batch, tangent_mode()));
  }
  return at::cat(parts);
}

at::Tensor Linearization::input_gradient(const at::Tensor& direction,
                                         const at::Tensor& cotangents) const {
  std::vector<at::Tensor> parts;
  const auto by_batch = cotangents.reshape({examples(), classes()}).split(batch_size_);
  const auto batches = inputs_.split(batch_size_);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    parts.push_back(pumice::input_gradient(model_, weights_, direction, by_batch[i], batches[i],
                                           tangent_mode()));
  }
  return at::cat(parts);
}

TangentMode Linearization::tangent_mode() const {
  if (!*tangent_mode_) {
    const at::Tensor few = inputs_.narrow(0, 0, std::min(probed_examples, examples()));
    *tangent_mode_ = working_tangent_mode(model_, weights_, few);
  }
  return **tangent_mode_;
}

at::Tensor Linearization::vjp(const at::Tensor& cotangents) const {
  if (cotangents.numel() != rows()) {
    fail("vjp: cotangents of shape ", cotangents.sizes(), ", must be ", examples(), "×", classes());
  }
  const at::Tensor by_example = cotangents.reshape({examples(), classes()});
  at::Tensor sum = at::zeros({columns()}, at::kDouble);
  for (std::int64_t first = 0; first < examples(); first += batch_size_) {
    const std::int64_t count = std::min(batch_size_, examples() - first);
    sum.add_(pulled_back(model_, weights_, by_example.narrow(0, first, count),
                         inputs_.narrow(0, first, count)));
  }
  return sum.to(weights_.flat.scalar_type());
}

Examples Linearization::view(const std::optional<at::Tensor>& seeds) const {
  if (seeds && (seeds->dim() != 3 || seeds->size(0) != examples() || seeds->size(1) < 1 ||
                seeds->size(2) != classes())) {
    fail("seeds: shape ", seeds->sizes(), ", must be ", examples(), "×S×", classes());
  }
  return {model_, weights_, inputs_, table_, seeds};
}

Kernel Linearization::kernel(const KernelOptions& options) const {
  if (options.variance) check_variance(*options.variance, columns());
  return compute_kernel(view(options.seeds), nullptr, options);
}

Kernel Linearization::kernel(const Linearization& other, const KernelOptions& options) const {
  if (&other.model_ != &model_ || !at::equal(other.weights_.flat, weights_.flat)) {
    fail("kernel: the two sets of examples must share one model and one vector of weights");
  }
  if (options.variance) check_variance(*options.variance, columns());
  const Examples right = other.view(options.right_seeds);
  return compute_kernel(view(options.seeds), &right, options);
}

at::Tensor Linearization::query_blocks(const at::Tensor& variance,
                                       const RowStreamOptions& options) const {
  return noisy_answers(variance, options).covariance;
}

NoisyAnswers Linearization::noisy_answers(const at::Tensor& variance,
                                          const RowStreamOptions& options) const {
  check_variance(variance, columns());
  return pumice::noisy_answers(view(std::nullopt), variance, options);
}

at::Tensor Linearization::fisher_diagonal(const RowStreamOptions& options) const {
  // √π_y ∂ log π_y = Σ_c √π_y (δ_yc − π_c) ∂f_c: one row for each y.
  const at::Tensor shares = logits().softmax(1);
  const at::Tensor seeds =
      shares.sqrt().unsqueeze(2) * (at::eye(classes(), shares.options()) - shares.unsqueeze(1));
  return sum_of_squared_rows(seeds, options) / static_cast<double>(examples());
}

at::Tensor Linearization::sum_of_squared_rows(const std::optional<at::Tensor>& seeds,
                                              const RowStreamOptions& options) const {
  return sum_of_squares(view(seeds), options);
}

}  // namespace pumice
