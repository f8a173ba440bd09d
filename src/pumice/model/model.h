// A classifier as a function of its weights: logits = f_w(x).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pumice/model/safetensors.h"
#include "pumice/model/weights.h"

namespace pumice {

// The weights come from outside at each call; the model itself holds the architecture and the
// buffers (batch-norm statistics), which are not part of w. Not safe for calls from several threads
// at once.
class Model {
 public:
  virtual ~Model() = default;

  virtual const WeightLayout& layout() const = 0;
  // Named tensors that are stored with the weights but never trained by gradient.
  virtual std::vector<NamedTensor> buffers() const = 0;
  // inputs N×C×H×W → logits N×c, in evaluation mode: batch norm uses its stored statistics, so that
  // examples do not depend on each other. Differentiable with respect to weights.flat and inputs,
  // in the precision of weights.flat. May be called by several threads at once.
  virtual at::Tensor logits(const Weights& weights, const at::Tensor& inputs) const = 0;
  // Writes weights, buffers and metadata in the model's own format, atomically.
  virtual void save(const std::filesystem::path& path, const Weights& weights,
                    const Metadata& metadata) const = 0;
};

// The optional ability to train batch-norm statistics: needed for pre-training, never afterwards.
class TrainableStatistics {
 public:
  virtual ~TrainableStatistics() = default;
  // As Model::logits, but batch norm uses the batch's own statistics and moves the stored ones by a
  // tenth of the way towards them.
  virtual at::Tensor logits_in_training(const Weights& weights, const at::Tensor& inputs) = 0;
};

// Weights and buffers.
std::string digest(const Model& model, const Weights& weights);

}  // namespace pumice
