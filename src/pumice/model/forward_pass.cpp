#include "pumice/model/forward_pass.h"

#include <cassert>

namespace pumice {

void LayerDeclaration::convolution(const std::string& name, std::int64_t inputs,
                                   std::int64_t outputs, std::int64_t kernel, bool bias) {
  layout.add(name + ".weight", {outputs, inputs, kernel, kernel});
  if (bias) layout.add(name + ".bias", {outputs});
}

void LayerDeclaration::batch_norm(const std::string& name, std::int64_t channels) {
  layout.add(name + ".weight", {channels});
  layout.add(name + ".bias", {channels});
  buffers.emplace_back(name + ".running_mean", at::zeros({channels}));
  buffers.emplace_back(name + ".running_var", at::ones({channels}));
}

void LayerDeclaration::linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  layout.add(name + ".weight", {outputs, inputs});
  layout.add(name + ".bias", {outputs});
}

ForwardPass::ForwardPass(const Weights& weights, const std::vector<NamedTensor>& buffers,
                         BatchNormMode mode)
    : mode_(mode) {
  const std::vector<at::Tensor> parts = weights.tensors();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tensors_.emplace(weights.layout->entries()[i].name, parts[i]);
  }
  // to() is free when the type is already right, so updates of the statistics reach the original.
  for (const auto& [name, tensor] : buffers) {
    tensors_.emplace(name, tensor.to(weights.flat.scalar_type()));
  }
}

const at::Tensor& ForwardPass::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  assert(found != tensors_.end());
  return found->second;
}

at::Tensor ForwardPass::convolution(const std::string& name, const at::Tensor& x,
                                    std::int64_t stride) const {
  const at::Tensor& weight = at(name + ".weight");
  const std::int64_t padding = weight.size(2) / 2;
  const at::Tensor bias = has(name + ".bias") ? at(name + ".bias") : at::Tensor();
  return at::conv2d(x, weight, bias, stride, padding);
}

at::Tensor ForwardPass::batch_norm(const std::string& name, const at::Tensor& x) const {
  const double momentum = 0.1;
  const double epsilon = 1e-5;
  return at::batch_norm(x, at(name + ".weight"), at(name + ".bias"), at(name + ".running_mean"),
                        at(name + ".running_var"), mode_ == BatchNormMode::batch_statistics,
                        momentum, epsilon, /*cudnn_enabled=*/false);
}

at::Tensor ForwardPass::linear(const std::string& name, const at::Tensor& x) const {
  return at::linear(x, at(name + ".weight"), at(name + ".bias"));
}

}  // namespace pumice
