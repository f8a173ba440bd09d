// A model under audit and its reference: small networks with noise in their weights.
#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include <memory>

#include "linearization/small_models.h"
#include "pumice/model/weight_distribution.h"

namespace pumice::testing {

struct SmallAudit {
  std::shared_ptr<FunctionModel> model;
  WeightDistribution scrubbed, reference;
  at::Tensor inputs;  // float64
};

inline SmallAudit audit_of(std::shared_ptr<FunctionModel> model, const at::Tensor& inputs,
                           double distance = 0.05) {
  const Weights reference = model->random_weights();
  torch::manual_seed(17);
  const std::int64_t size = reference.flat.numel();
  const Weights scrubbed{reference.layout,
                         reference.flat + distance * torch::randn({size}, at::kDouble)};
  const auto variance = [&] { return 0.01 * (torch::rand({size}, at::kDouble) + 0.5); };
  return {model, {scrubbed, variance()}, {reference, variance()}, inputs};
}

// f = W x + b on 1×4×4 images, 3 classes: 51 weights, and linear in them.
inline std::shared_ptr<FunctionModel> linear_classifier() {
  return std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{{"head.weight", {3, 16}},
                                                                     {"head.bias", {3}}},
      [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
        return at::linear(x.flatten(1).to(w[0].scalar_type()), w[0], w[1]);
      });
}

// A convolution and a linear layer on 1×8×8 images, 3 classes; smooth.
inline std::shared_ptr<FunctionModel> curved_classifier() {
  return std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{{"first.weight", {3, 1, 3, 3}},
                                                                     {"first.bias", {3}},
                                                                     {"head.weight", {3, 48}},
                                                                     {"head.bias", {3}}},
      [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
        const at::Tensor y = at::conv2d(x.to(w[0].scalar_type()), w[0], w[1], 2, 1).tanh();
        return at::linear(y.flatten(1), w[2], w[3]);
      });
}

// Written as in the textbook, with inverse and determinants.
inline double textbook_divergence(const at::Tensor& difference, const at::Tensor& covariance,
                                  const at::Tensor& reference) {
  const at::Tensor inverse = at::linalg_inv(reference);
  const auto logdet = [](const at::Tensor& matrix) { return at::logdet(matrix).item<double>(); };
  return 0.5 * (difference.dot(inverse.mv(difference)).item<double>() +
                inverse.mm(covariance).trace().item<double>() - logdet(covariance) +
                logdet(reference) - static_cast<double>(difference.numel()));
}

}  // namespace pumice::testing
