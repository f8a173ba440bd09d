// The layers that the networks of the zoo are written in. Not installed knowledge: only zoo.cpp
// uses it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "pumice/model/weights.h"

namespace pumice {

// Declares layers: which parameters and buffers a network has.
class LayerDeclaration {
 public:
  void convolution(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                   std::int64_t kernel, bool bias);
  void batch_norm(const std::string& name, std::int64_t channels);
  void linear(const std::string& name, std::int64_t inputs, std::int64_t outputs);

  WeightLayout layout;
  std::vector<NamedTensor> buffers;
};

enum class BatchNormMode { stored_statistics, batch_statistics };

// Runs layers by name on given weights.
class ForwardPass {
 public:
  ForwardPass(const Weights& weights, const std::vector<NamedTensor>& buffers, BatchNormMode mode);

  // Padding keeps the size at stride 1: ⌊kernel/2⌋.
  at::Tensor convolution(const std::string& name, const at::Tensor& x,
                         std::int64_t stride = 1) const;
  at::Tensor batch_norm(const std::string& name, const at::Tensor& x) const;
  at::Tensor linear(const std::string& name, const at::Tensor& x) const;
  bool has(const std::string& parameter) const { return tensors_.contains(parameter); }

 private:
  const at::Tensor& at(const std::string& name) const;

  std::unordered_map<std::string, at::Tensor> tensors_;
  BatchNormMode mode_;
};

}  // namespace pumice
