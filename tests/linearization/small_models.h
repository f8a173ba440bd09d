// Small networks that together contain every rule, and the Jacobian written down as the reference.
#pragma once

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pumice/model/model.h"

namespace pumice::testing {

// A model written as one function of its parameters.
class FunctionModel : public Model {
 public:
  using Function = std::function<at::Tensor(const std::vector<at::Tensor>&, at::Tensor)>;

  FunctionModel(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& parameters,
                Function function)
      : function_(std::move(function)) {
    auto layout = std::make_shared<WeightLayout>();
    for (const auto& [name, shape] : parameters) layout->add(name, shape);
    layout_ = layout;
  }

  const WeightLayout& layout() const override { return *layout_; }
  std::vector<NamedTensor> buffers() const override { return {}; }
  at::Tensor logits(const Weights& weights, const at::Tensor& inputs) const override {
    return function_(weights.tensors(), inputs);
  }
  void save(const std::filesystem::path&, const Weights&, const Metadata&) const override {}

  Weights random_weights(at::ScalarType type = at::kDouble, std::int64_t seed = 3) const {
    torch::manual_seed(seed);
    return {layout_, (torch::randn({layout_->total()}, at::kDouble) * 0.4).to(type)};
  }

 private:
  Function function_;
  std::shared_ptr<const WeightLayout> layout_;
};

// Row = example·c + class, one backward pass for each: what the engine must reproduce.
inline at::Tensor dense_jacobian(const Model& model, const Weights& weights,
                                 const at::Tensor& inputs) {
  std::vector<at::Tensor> rows;
  for (std::int64_t i = 0; i < inputs.size(0); ++i) {
    const Weights leaf{weights.layout, weights.flat.clone().requires_grad_()};
    const at::Tensor logits = model.logits(leaf, inputs.narrow(0, i, 1));
    for (std::int64_t c = 0; c < logits.size(1); ++c) {
      rows.push_back(torch::autograd::grad({logits[0][c]}, {leaf.flat}, {}, true)[0]);
    }
  }
  return at::stack(rows);
}

struct SmallModel {
  std::string name;
  std::shared_ptr<FunctionModel> model;
  at::Tensor inputs;              // 5 examples, float64
  std::vector<std::string> slow;  // parameters that no rule covers
};

inline at::Tensor some_images(std::vector<std::int64_t> shape, std::int64_t seed = 5) {
  torch::manual_seed(seed);
  return torch::randn(shape, at::kDouble);
}

// Strided, padded, dilated and grouped convolutions with bias, batch norm with stored statistics,
// group norm, a residual sum, mean over positions, linear.
inline SmallModel convolutions() {
  auto model = std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
          {"first.weight", {4, 3, 3, 3}},
          {"first.bias", {4}},
          {"norm.weight", {4}},
          {"norm.bias", {4}},
          {"grouped.weight", {4, 2, 3, 2}},
          {"grouped.bias", {4}},
          {"groups.weight", {4}},
          {"groups.bias", {4}},
          {"point.weight", {6, 4, 1, 1}},
          {"last.weight", {5, 6, 2, 2}},
          {"head.weight", {3, 5}},
          {"head.bias", {3}}},
      [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
        const at::Tensor mean = at::arange(4, x.options()) * 0.1;
        const at::Tensor variance = at::arange(4, x.options()) * 0.2 + 0.5;
        at::Tensor y = at::conv2d(x, w[0], w[1], 2, 2, 2);
        y = at::batch_norm(y, w[2], w[3], mean, variance, false, 0.1, 1e-5, false).relu_();
        const at::Tensor before = y;
        y = at::conv2d(y, w[4], w[5], at::IntArrayRef{1, 1}, at::IntArrayRef{1, 1},
                       at::IntArrayRef{1, 2}, 2);
        y = at::group_norm(y, 2, w[6], w[7], 1e-5, false).tanh();
        y = at::conv2d(y + before, w[8]).sigmoid();
        y = at::conv2d(y, w[9]).mean(at::IntArrayRef{2, 3});
        return at::linear(y, w[10], w[11]);
      });
  return {"convolutions", model, some_images({5, 3, 7, 6}), {}};
}

// Linear layers over positions, layer norm, a summand for each position, a product without bias, a
// weight that is used twice, attention between positions, a class token that is expanded over the
// batch.
inline SmallModel sequence() {
  auto model = std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{{"embed.weight", {6, 4}},
                                                                     {"embed.bias", {6}},
                                                                     {"place", {1, 5, 6}},
                                                                     {"token", {1, 1, 6}},
                                                                     {"norm.weight", {6}},
                                                                     {"norm.bias", {6}},
                                                                     {"shared.weight", {6, 6}},
                                                                     {"shared.bias", {6}},
                                                                     {"plain.weight", {6, 6}},
                                                                     {"head.weight", {3, 6}},
                                                                     {"head.bias", {3}}},
      [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
        at::Tensor y = at::linear(x.flatten(2).transpose(1, 2), w[0], w[1]) + w[2];
        y = at::cat({w[3].expand({x.size(0), 1, 6}), y}, 1);
        y = at::layer_norm(y, {6}, w[4], w[5], 1e-5, false);
        y = y + at::linear(y, w[6], w[7]).tanh();
        y = y + at::linear(y, w[6], w[7]).tanh();
        const at::Tensor key = at::matmul(y, w[8]);
        y = at::matmul(at::matmul(y, key.transpose(1, 2)).softmax(2), y);
        return at::linear(y.select(1, 0), w[9], w[10]);
      });
  return {"sequence", model, some_images({5, 4, 5, 1}), {}};
}

// Indices from the input, an embedding that is looked up twice with a padding index, another
// summand.
inline SmallModel words() {
  auto model = std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{{"table.weight", {7, 4}},
                                                                     {"hidden.weight", {5, 4}},
                                                                     {"shift", {5}},
                                                                     {"head.weight", {2, 5}}},
      [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
        const at::Tensor indices = (x.flatten(1).abs() * 2).clamp_max(6).to(at::kLong);
        at::Tensor y = at::embedding(w[0], indices, 3).tanh();
        y = y + at::embedding(w[0], (indices + 1).remainder(7), 3);
        y = at::linear(y, w[1]) - w[2] * 1;
        return at::linear(y.relu().mean(1), w[3]);
      });
  return {"words", model, some_images({5, 1, 2, 3}), {"shift"}};
}

// One convolution applied three times (its contributions add before the product), in one and three
// dimensions.
inline SmallModel repeated() {
  auto model = std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
          {"step.weight", {3, 3, 3, 3}},
          {"step.bias", {3}},
          {"line.weight", {4, 3, 3}},
          {"volume.weight", {2, 2, 2, 2, 2}},
          {"head.weight", {3, 8}}},
      [](const std::vector<at::Tensor>& w, at::Tensor x) {
        for (int i = 0; i < 3; ++i) x = at::conv2d(x, w[0], w[1], 1, 1).tanh();
        const at::Tensor line = at::conv1d(x.flatten(2), w[2], {}, 2, 1).relu().mean(2);
        const at::Tensor volume =
            at::conv3d(at::stack({x.narrow(1, 0, 2), x.narrow(1, 1, 2)}, 2), w[3]).sigmoid();
        return at::linear(at::cat({line, volume.flatten(1).narrow(1, 0, 4)}, 1), w[4]);
      });
  return {"repeated", model, some_images({5, 3, 4, 4}), {}};
}

// What no rule covers: a standardised weight, a transposed convolution, a gain, a matrix used in
// two shapes, examples that are not the first axis.
inline SmallModel unruly() {
  auto model = std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
          {"standard.weight", {4, 3, 3, 3}},
          {"up.weight", {4, 4, 2, 2}},
          {"gain", {4, 1, 1}},
          {"turned.weight", {4, 4}},
          {"swapped.weight", {4, 4}},
          {"head.weight", {3, 4}},
          {"unused", {2}}},
      [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
        const at::Tensor standard = w[0] / w[0].norm();
        at::Tensor y = at::conv2d(x, standard, {}, 2, 1).tanh();
        y = at::conv_transpose2d(y, w[1], {}, 2).sigmoid() * w[2];
        y = y.mean(3).transpose(1, 2);                                   // N×T×C
        y = at::matmul(at::linear(y, w[3]).tanh(), w[3]);                // W and Wᵀ
        y = at::linear(y.transpose(0, 1), w[4]).tanh().transpose(0, 1);  // T×N×C
        return at::linear(y.mean(1), w[5]);
      });
  return {"unruly",
          model,
          some_images({5, 3, 6, 6}),
          {"standard.weight", "up.weight", "gain", "turned.weight", "swapped.weight"}};
}

inline std::vector<SmallModel> small_models() {
  return {convolutions(), sequence(), words(), repeated(), unruly()};
}

}  // namespace pumice::testing
