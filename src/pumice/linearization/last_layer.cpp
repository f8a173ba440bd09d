#include "pumice/linearization/last_layer.h"

#include "pumice/linearization/layer_signals.h"

namespace pumice {

at::Tensor last_layer_inputs(const Model& model, const Weights& weights,
                             const InputSource& inputs) {
  constexpr std::int64_t at_once = 64;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& positions : at::arange(inputs.size(), at::kLong).split(at_once)) {
    const LayerSignals signals(model, weights, inputs.at(positions));
    // Uses come from the logits to the input.
    parts.push_back(signals.matrix_uses().empty()
                        ? signals.logits().detach()
                        : signals.matrix_uses().front().input.detach().clone());
  }
  return at::cat(parts);
}

}  // namespace pumice
