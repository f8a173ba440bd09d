#include "pumice/evaluation/activation_distance.h"

#include "pumice/core/error.h"

namespace pumice {

at::Tensor softmax_outputs(const Model& model, const Weights& weights, const at::Tensor& inputs,
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

at::Tensor softmax_outputs_along(const Model& model, const Weights& from, const Weights& to,
                                 const at::Tensor& inputs, const std::vector<double>& positions,
                                 std::int64_t batch_size) {
  if (!(*from.layout == *to.layout)) fail("activation path: its ends have different parameters");
  if (positions.empty()) fail("activation path: no positions, must be at least one");
  const at::Tensor start = from.flat.to(at::kDouble);
  const at::Tensor end = to.flat.to(at::kDouble);
  std::vector<at::Tensor> outputs;
  for (const double position : positions) {
    // Both ends to the bit: a (h − w) + w is h only up to rounding.
    const at::Tensor flat = start.mul(1 - position).add_(end, position);
    const Weights weights{from.layout, flat.to(from.flat.scalar_type())};
    outputs.push_back(softmax_outputs(model, weights, inputs, batch_size));
  }
  return at::stack(outputs);
}

at::Tensor activation_distances(const at::Tensor& outputs, const at::Tensor& reference_outputs) {
  if (outputs.dim() < 2 || outputs.sizes().slice(outputs.dim() - 2) != reference_outputs.sizes()) {
    fail("activation distance: outputs of shape ", outputs.sizes(), " and ",
         reference_outputs.sizes(), ", must be to the same examples");
  }
  return (outputs - reference_outputs).abs().sum(-1);
}

Readout activation_distance_readout(const std::string& set, const at::Tensor& distances,
                                    const BootstrapOptions& options) {
  const at::Tensor wide = distances.to(at::kDouble).contiguous();
  const auto* first = wide.data_ptr<double>();
  return mean_readout(
      "activation distance on " + set, "L1 distance",
      "mean over the examples of the L1 distance between the softmax outputs of the "
      "model and of a retrained model",
      ReadoutDirection::small, {first, first + wide.numel()}, options);
}

}  // namespace pumice
