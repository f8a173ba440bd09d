#include "pumice/forgetting/scale_rule.h"

#include <gtest/gtest.h>

#include "contracts/linear_operator_contract.h"
#include "forgetting_tasks.h"
#include "pumice/forgetting/forgetting_method.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests

TEST(ScaleRule, TheLinearClassifierIsAtAStationaryPointOfItsObjective) {
  torch::manual_seed(1);
  const at::Tensor features = torch::randn({40, 5}, at::kDouble);
  const at::Tensor labels = at::randint(3, {40}, at::kLong);
  const at::Tensor centre = torch::randn({3, 6}, at::kDouble);
  const at::Tensor fitted = fit_linear_classifier(features, labels, centre, 0.1).requires_grad_();
  const at::Tensor x = at::cat({features, at::ones({40, 1}, at::kDouble)}, 1);
  const at::Tensor objective =
      at::cross_entropy_loss(x.mm(fitted.t()), labels) + 0.05 * (fitted - centre).square().sum();
  EXPECT_LT(torch::autograd::grad({objective}, {fitted})[0].norm().item<double>(), 1e-7);
}

TEST(ScaleRule, ForALinearModelTheScaleIsOneAndForAnUndershootingOneAtMostTwo) {
  const SmallRequest request = linear_request({1, 2});
  const ForgettingTask task = request.task();
  const at::Tensor u = request.weights.flat - request.start;
  const at::Tensor direction = at::zeros_like(u);
  EXPECT_NEAR(choose_scale(task, direction, u, u).scale, 1, 1e-12);
  EXPECT_NEAR(choose_scale(task, direction, u, u / 1.1).scale, std::pow(1.1, 4), 1e-9);
  EXPECT_EQ(choose_scale(task, direction, u, u / 3).scale, 2);
  EXPECT_EQ(choose_scale(task, direction, u, 2 * u).scale, 1);  // overshoots: the solution itself
  EXPECT_EQ(choose_scale(task, direction, u, -u).scale, 2);     // points the wrong way
}

// A direction that lowers every margin in proportion: the rule must find where the target is met.
TEST(ScaleRule, WithUnseenExamplesTheCohortGetsTheMarginOfItsHardness) {
  SmallRequest request = curved_request({0, 3, 6, 9, 12, 15, 18});
  Dataset unseen = blob_dataset(30, 3, 1, 8, 77);
  for (std::string& id : unseen.ids) id = "unseen/" + id;
  ForgettingTask task = request.task();
  task.validation = &unseen;
  SharedProblems shared(task);
  const LinearProblem& problem = shared.at_weights();
  const auto direction = problem.direction(request.split.cohort, request.split.retain,
                                           {.decay = request.weight_decay});
  const ScaleChoice choice =
      choose_scale(task, direction.value, problem.displacement(), direction.all.value);
  ASSERT_TRUE(choice.margins);
  EXPECT_EQ(choice.margins->unseen_examples, 90);
  EXPECT_GE(choice.margins->matched_scale, 1);
  EXPECT_LE(choice.margins->matched_scale, 8);
  // Shrunk towards the usual scale by the weight of five examples.
  task.validation = nullptr;
  const double usual =
      choose_scale(task, direction.value, problem.displacement(), direction.all.value).scale;
  EXPECT_NEAR(choice.scale,
              std::pow(choice.margins->matched_scale, 7.0 / 12) * std::pow(usual, 5.0 / 12), 1e-9);
  // If the target lies between the ends, it is met.
  const auto margin_at = [&](double scale) {
    const at::Tensor index = at::tensor(request.split.cohort, at::kLong);
    const at::Tensor logits = request.model->logits(
        {request.weights.layout, request.weights.flat + scale * direction.value},
        request.inputs().index_select(0, index));
    const at::Tensor labels = request.data.labels.index_select(0, index).unsqueeze(1);
    const at::Tensor others = logits.scatter(1, labels, -1e300);
    return (logits.gather(1, labels).squeeze(1) - std::get<0>(others.max(1))).mean().item<double>();
  };
  EXPECT_NEAR(choice.margins->before, margin_at(0), 1e-9);
  if (margin_at(1) > choice.margins->target && margin_at(8) < choice.margins->target) {
    EXPECT_NEAR(margin_at(choice.margins->matched_scale), choice.margins->target,
                0.01 * std::abs(margin_at(1) - margin_at(8)));
  } else {
    const double end = margin_at(1) <= choice.margins->target ? 1 : 8;
    EXPECT_EQ(choice.margins->matched_scale, end);
  }
}

}  // namespace
}  // namespace pumice
