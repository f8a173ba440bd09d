#include "pumice/evaluation/activation_distance.h"

#include "pumice/core/error.h"

namespace pumice {
namespace {

at::Tensor shares(const Model& model, const Weights& weights, const at::Tensor& inputs,
                  std::int64_t batch_size) {
  if (!(*weights.layout == model.layout())) {
    fail("activation distance: weights with ", weights.layout->total(),
         " values or other names and shapes, the model has ", model.layout().total());
  }
  if (batch_size < 1) fail("batch size: ", batch_size, ", must be >= 1");
  if (inputs.dim() < 1 || inputs.size(0) < 1) fail("activation distance: there are no examples");
  at::NoGradGuard no_gradient;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& batch : inputs.split(batch_size)) {
    parts.push_back(model.logits(weights, batch).to(at::kDouble).softmax(1));
  }
  return at::cat(parts);
}

}  // namespace

at::Tensor activation_distances(const Model& model, const Weights& weights,
                                const Weights& reference, const at::Tensor& inputs,
                                std::int64_t batch_size) {
  return (shares(model, weights, inputs, batch_size) - shares(model, reference, inputs, batch_size))
      .abs()
      .sum(1);
}

at::Tensor activation_path(const Model& model, const Weights& from, const Weights& to,
                           const Weights& reference, const at::Tensor& inputs,
                           const std::vector<double>& positions, std::int64_t batch_size) {
  if (!(*from.layout == *to.layout)) fail("activation path: its ends have different parameters");
  const at::Tensor target = shares(model, reference, inputs, batch_size);
  const at::Tensor start = from.flat.to(at::kDouble);
  const at::Tensor end = to.flat.to(at::kDouble);
  std::vector<at::Tensor> rows;
  for (const double position : positions) {
    // Both ends to the bit: a (h − w) + w is h only up to rounding.
    const at::Tensor flat = start.mul(1 - position).add_(end, position);
    const Weights weights{from.layout, flat.to(from.flat.scalar_type())};
    rows.push_back((shares(model, weights, inputs, batch_size) - target).abs().sum(1));
  }
  return rows.empty() ? at::zeros({0, inputs.size(0)}, at::kDouble) : at::stack(rows);
}

Readout activation_distance_readout(const std::string& set, const at::Tensor& distances,
                                    const BootstrapOptions& options) {
  const at::Tensor wide = distances.to(at::kDouble).contiguous();
  const auto* first = wide.data_ptr<double>();
  return mean_readout(
      "activation distance on " + set, "L1 distance",
      "mean over the examples of the L1 distance between the softmax outputs of the "
      "model and of the retrained model",
      ReadoutDirection::small, {first, first + wide.numel()}, options);
}

}  // namespace pumice
