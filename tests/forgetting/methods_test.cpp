#include <gtest/gtest.h>

#include "contracts/forgetting_method_contract.h"
#include "contracts/linear_operator_contract.h"
#include "forgetting_tasks.h"
#include "pumice/model/zoo.h"
#include "refusal.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests
const std::vector<std::string> none;

// A real training on made-up pictures with a small MLP.
struct TrainedRequest {
  Dataset data = blob_dataset(10);
  Network network{Architecture{
      .name = "mlp", .width = 0.25, .input_channels = 1, .classes = 3, .image_size = 8}};
  Normalization normalization = measure_normalization(data);
  TrainingOptions recipe{.epochs = 30, .batch_size = 8, .rate = 0.05, .weight_decay = 0.02};
  Weights start = fresh_weights(network, 1);
  Split split, reversed;
  Weights weights;

  explicit TrainedRequest(const std::vector<std::string>& cohort) {
    Training training(network, start, {data, {}}, normalization, recipe);
    while (!training.finished()) training.run_epoch([](std::int64_t) { return true; });
    weights = training.state().weights;
    split = make_split(data, {}, cohort);
    reversed = make_split(data, {}, {cohort.rbegin(), cohort.rend()});
  }
  ForgettingTask task(bool other_order = false) {
    return {.model = network,
            .weights = weights,
            .centre = start.flat,
            .start = start.flat,
            .train = data,
            .split = other_order ? reversed : split,
            .normalization = normalization,
            .weight_decay = recipe.weight_decay,
            .recipe = recipe};
  }
};

TEST(ForgettingMethods, EveryMethodOfTheTableKeepsTheContract) {
  TrainedRequest request({"train/4", "train/1", "train/16", "train/7"});
  for (const MethodEntry& entry : forgetting_methods()) {
    EXPECT_EQ(broken_promises(*entry.make({}), request.task(), request.task(true)), none)
        << entry.name;
    EXPECT_FALSE(entry.description.empty());
  }
}

TEST(ForgettingMethods, TheWorkToldDoesNotDependOnWhatRanBefore) {
  TrainedRequest request({"train/4", "train/1"});
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  for (const char* name : {"newton", "consistent", "ntk"}) {
    for (const Solver solver : {Solver::dense, Solver::matrix_free}) {
      SharedProblems own(task);
      const auto method = method_named(name).make({.solver = solver});
      const double alone = method->shift(task, own).summary.epoch_equivalents;
      EXPECT_GT(alone, 1);
      EXPECT_NEAR(method->shift(task, shared).summary.epoch_equivalents, alone, 1e-9 * alone)
          << name << ", " << solver_name(solver);
    }
  }
}

TEST(ForgettingMethods, APureShiftDoesNothingForAnEmptyCohort) {
  for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
    SmallRequest request = curved_request({});
    for (const char* name : {"ntk", "consistent", "original"}) {
      const ForgettingTask task = request.task();
      SharedProblems shared(task);
      const ShiftResult result =
          method_named(name).make({.curvature = curvature})->shift(task, shared);
      EXPECT_TRUE(at::equal(result.weights.flat, request.weights.flat)) << name;
    }
  }
}

// The anchor: where the network is linear in its weights, forgetting is retraining.
TEST(ForgettingMethods, ForALinearModelNtkAtTheStartEqualsExactRetraining) {
  const SmallRequest request = linear_request({0, 6, 13, 14, 22});
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const at::Tensor retrained = exact_training(request, request.split.retain);
  const ShiftResult result = method_named("ntk")
                                 .make({.linearize_at = LinearizeAt::start, .trapezium = false})
                                 ->shift(task, shared);
  EXPECT_LT((result.weights.flat - retrained).norm().item<double>(),
            1e-6 * (retrained - request.weights.flat).norm().item<double>());
  EXPECT_EQ(result.summary.linearized_at, "start");
}

TEST(ForgettingMethods, ForALinearModelConsistentFromAConvergedModelEqualsExactRetraining) {
  for (const std::vector<std::int64_t>& cohort :
       {std::vector<std::int64_t>{5},                                        // one example
        std::vector<std::int64_t>{0, 3, 6, 9, 12, 15, 18, 21},               // one whole class
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}) {  // half the data
    const SmallRequest request = linear_request(cohort);
    const at::Tensor retrained = exact_training(request, request.split.retain);
    for (const Solver solver : {Solver::dense, Solver::matrix_free}) {
      ForgettingTask task = request.task();
      task.linear.relative_tolerance = 1e-12;
      SharedProblems shared(task);
      const ShiftResult result =
          method_named("consistent").make({.solver = solver})->shift(task, shared);
      EXPECT_LT((result.weights.flat - retrained).norm().item<double>(),
                1e-6 * (retrained - request.weights.flat).norm().item<double>())
          << cohort.size();
      EXPECT_NEAR(*result.summary.scale, 1, 1e-6);
    }
  }
}

TEST(ForgettingMethods, ForALinearModelNewtonEqualsExactRetrainingFromAnywhere) {
  SmallRequest request = linear_request({1, 2, 3});
  const at::Tensor retrained = exact_training(request, request.split.retain);
  torch::manual_seed(3);
  request.weights.flat = torch::randn_like(request.weights.flat);
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const ShiftResult result = method_named("newton").make({})->shift(task, shared);
  EXPECT_LT(relative_distance(result.weights.flat, retrained), 1e-8);
}

TEST(ForgettingMethods, ForgettingEverythingLeavesTheStart) {
  const SmallRequest request = linear_request(everything(24));
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const ShiftResult result = method_named("consistent").make({})->shift(task, shared);
  EXPECT_LT((result.weights.flat - request.start).norm().item<double>(), 1e-8);
}

TEST(ForgettingMethods, TheTrapeziumFollowsItsFormula) {
  const SmallRequest request = curved_request({2, 3, 4});
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const ForgettingSummary stretched = method_named("ntk").make({})->shift(task, shared).summary;
  const ForgettingSummary plain =
      method_named("ntk").make({.trapezium = false})->shift(task, shared).summary;
  ASSERT_TRUE(stretched.trapezium);
  EXPECT_FALSE(plain.trapezium);
  EXPECT_EQ(*plain.scale, 1);
  const auto direction =
      shared.at_weights().direction(request.split.cohort, request.split.retain,
                                    {.decay = request.weight_decay, .displaced = false});
  const at::Tensor error = request.weights.flat - request.start - direction.retain.value;
  const double length = direction.value.norm().item<double>(), e = error.norm().item<double>();
  const double cosine = direction.value.dot(error).item<double>() / (length * e);
  EXPECT_NEAR(stretched.trapezium->cosine, cosine, 1e-12);
  EXPECT_NEAR(stretched.shift_norm, length + 2 * std::abs(cosine) * e, 1e-9 * e);
  EXPECT_TRUE(stretched.shared_kernel || plain.shared_kernel);
}

TEST(ForgettingMethods, MethodsOfOneRequestShareOneKernel) {
  const SmallRequest request = curved_request({2, 3, 4});
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const ForgettingSummary first = method_named("newton").make({})->shift(task, shared).summary;
  const ForgettingSummary second = method_named("ntk").make({})->shift(task, shared).summary;
  EXPECT_FALSE(first.shared_kernel);
  EXPECT_TRUE(second.shared_kernel);
}

TEST(ForgettingMethods, RidgeAndScaleThatAreGivenAreUsedAndTold) {
  const SmallRequest request = curved_request({2, 3, 4});
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const ShiftResult once =
      method_named("consistent").make({.ridge = 0.5, .scale = 1.0})->shift(task, shared);
  const ShiftResult twice =
      method_named("consistent").make({.ridge = 0.5, .scale = 2.0})->shift(task, shared);
  EXPECT_EQ(*once.summary.ridge, 0.5);
  EXPECT_EQ(twice.summary.scale_rule, "given");
  EXPECT_LT(relative_distance(twice.weights.flat - request.weights.flat,
                              2 * (once.weights.flat - request.weights.flat)),
            1e-12);
}

TEST(ForgettingMethods, RetrainIsTheTrainingThatLeavesTheCohortOut) {
  TrainedRequest request({"train/4", "train/1"});
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const ShiftResult result = method_named("retrain").make({})->shift(task, shared);
  Training training(request.network, request.start, {request.data, request.split.cohort},
                    request.normalization, request.recipe);
  while (!training.finished()) training.run_epoch([](std::int64_t) { return true; });
  EXPECT_TRUE(at::equal(result.weights.flat, training.state().weights.flat));
  const ReferenceSummary same = compare(request.weights, result.weights, {result.weights});
  EXPECT_NEAR(same.cosine, 1, 1e-9);
  EXPECT_NEAR(same.norm_ratio, 1, 1e-9);
  EXPECT_EQ(same.distance, 0);
}

TEST(ForgettingMethods, WhatIsMissingIsNamed) {
  SmallRequest request = curved_request({1});
  ForgettingTask task = request.task();
  task.start.reset();
  SharedProblems shared(task);
  EXPECT_NE(refusal([&] { method_named("retrain").make({})->shift(task, shared); }).find("--init"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              method_named("ntk").make({.linearize_at = LinearizeAt::start})->shift(task, shared);
            }).find("--init"),
            std::string::npos);
  EXPECT_NE(refusal([] { method_named("consitent"); }).find("did you mean 'consistent'?"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
