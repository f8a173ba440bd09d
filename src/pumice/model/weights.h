// The trainable parameters of a model as one flat vector w ∈ R^p, with the names and shapes they
// came from.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pumice {

using NamedTensor = std::pair<std::string, at::Tensor>;

// Where each parameter lies in the flat vector. The order is the model's own order of parameters;
// each parameter is stored row by row (C order).
class WeightLayout {
 public:
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;
    std::int64_t count = 0;

    bool operator==(const Entry&) const = default;
  };

  // Adds a parameter at the end. Names must be unique (assert).
  void add(std::string name, std::vector<std::int64_t> shape);

  const std::vector<Entry>& entries() const { return entries_; }
  std::int64_t total() const { return total_; }                    // p
  std::optional<std::size_t> find(const std::string& name) const;  // position in entries()
  bool operator==(const WeightLayout&) const = default;

 private:
  std::vector<Entry> entries_;
  std::int64_t total_ = 0;
};

struct Weights {
  std::shared_ptr<const WeightLayout> layout;
  at::Tensor flat;  // p

  // Views of `flat`, one for each entry. Differentiable, as a single node of the autograd graph:
  // the gradient with respect to `flat` costs one concatenation.
  std::vector<at::Tensor> tensors() const;
  at::Tensor tensor(const std::string& name) const;  // throws Error if there is none
};

// The flat vector from tensors by name. Throws Error for a missing parameter or one of another
// shape.
Weights gather_weights(std::shared_ptr<const WeightLayout> layout,
                       const std::vector<NamedTensor>& tensors);

// Names, shapes and values, in order.
std::string digest(const Weights& weights);

}  // namespace pumice
