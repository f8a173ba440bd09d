// Small deletion requests: a network that is linear in its weights, and one that is not.
#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <numeric>

#include "linearization/small_models.h"
#include "pumice/forgetting/forgetting_task.h"
#include "small_data.h"

namespace pumice::testing {

// Everything that a ForgettingTask refers to.
struct SmallRequest {
  std::shared_ptr<FunctionModel> model;
  Dataset data;
  Normalization normalization;
  Split split;
  Weights weights;   // w(D)
  at::Tensor start;  // w0
  double weight_decay = 0.1;
  Loss loss = Loss::squared;

  ForgettingTask task() const {
    return {.model = *model,
            .weights = weights,
            .centre = start,
            .start = start,
            .train = data,
            .split = split,
            .normalization = normalization,
            .weight_decay = weight_decay,
            .loss = loss,
            .recipe = {}};
  }
  at::Tensor inputs() const { return network_inputs(data.images, normalization).to(at::kDouble); }
};

inline Split split_off(std::int64_t examples, const std::vector<std::int64_t>& cohort) {
  Split split;
  split.cohort = cohort;
  std::sort(split.cohort.begin(), split.cohort.end());
  for (std::int64_t i = 0; i < examples; ++i) {
    if (!std::binary_search(split.cohort.begin(), split.cohort.end(), i)) split.retain.push_back(i);
  }
  return split;
}

inline std::vector<std::int64_t> everything(std::int64_t examples) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(examples));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

inline std::shared_ptr<FunctionModel> linear_model() {
  return std::make_shared<FunctionModel>(
      std::vector<std::pair<std::string, std::vector<std::int64_t>>>{{"head.weight", {3, 64}},
                                                                     {"head.bias", {3}}},
      [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
        return at::linear(x.flatten(1).to(w[0].scalar_type()), w[0], w[1]);
      });
}

inline std::shared_ptr<FunctionModel> curved_model() {
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

// The exact minimum of Σ_S ½|f − y|² + |S|λ/2 |w − w0|² for a model linear in its weights, by the
// normal equations in weight space: what training on S would end at.
inline at::Tensor exact_training(const SmallRequest& request,
                                 const std::vector<std::int64_t>& examples) {
  const std::int64_t classes = request.data.classes.size();
  const at::Tensor index = at::tensor(examples, at::kLong);
  const at::Tensor inputs = request.inputs().index_select(0, index);
  const Weights at_start{request.weights.layout, request.start};
  const at::Tensor jacobian = dense_jacobian(*request.model, at_start, inputs);
  const at::Tensor residual =
      request.model->logits(at_start, inputs).detach() -
      at::one_hot(request.data.labels.index_select(0, index), classes).to(at::kDouble);
  const double ridge = request.weight_decay * static_cast<double>(examples.size());
  const at::Tensor matrix =
      jacobian.t().mm(jacobian) + ridge * at::eye(jacobian.size(1), at::kDouble);
  return request.start -
         at::linalg_solve(matrix, jacobian.t().mv(residual.reshape({-1})).unsqueeze(1)).squeeze(1);
}

// 24 examples, 3 classes, float64, squared loss, w(D) trained to the end.
inline SmallRequest linear_request(const std::vector<std::int64_t>& cohort) {
  SmallRequest request;
  request.model = linear_model();
  request.data = blob_dataset(8);
  request.normalization = measure_normalization(request.data);
  request.split = split_off(request.data.size(), cohort);
  request.weights = request.model->random_weights();
  request.start = request.weights.flat.clone();
  request.weights.flat = exact_training(request, everything(request.data.size()));
  return request;
}

// Cross-entropy, a network that is not linear, w(D) somewhere near w0.
inline SmallRequest curved_request(const std::vector<std::int64_t>& cohort,
                                   at::ScalarType type = at::kDouble, std::int64_t per_class = 8) {
  SmallRequest request;
  request.model = curved_model();
  request.data = blob_dataset(per_class);
  request.normalization = measure_normalization(request.data);
  request.split = split_off(request.data.size(), cohort);
  request.weights = request.model->random_weights(type);
  torch::manual_seed(11);
  request.start = (request.weights.flat.to(at::kDouble) +
                   0.05 * torch::randn({request.weights.flat.numel()}, at::kDouble))
                      .to(type);
  request.loss = Loss::cross_entropy;
  return request;
}

// Its images as they are stored, read batch by batch.
inline LinearProblem streamed_problem(const SmallRequest& request,
                                      LinearProblemOptions options = {}) {
  return {
      *request.model,      request.weights, InputSource(request.data.images, request.normalization),
      request.data.labels, request.start,   request.loss,
      std::move(options)};
}

}  // namespace pumice::testing
