#include "pumice/forgetting/dual_solve.h"

#include <ATen/ops/linalg_pinv.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "contracts/linear_operator_contract.h"
#include "pumice/forgetting/loss.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;
using testing::relative_distance;

at::Tensor softmax_hessians(const at::Tensor& logits) {
  const at::Tensor shares = logits.softmax(1);
  return at::diag_embed(shares) - shares.unsqueeze(2) * shares.unsqueeze(1);
}

at::Tensor some_kernel(std::int64_t size) {
  torch::manual_seed(1);
  const at::Tensor rows = torch::randn({size, size + 3}, at::kDouble);
  return rows.mm(rows.t());
}

TEST(Loss, TheRootOfTheCurvatureTimesItsTransposeIsTheSoftmaxHessian) {
  torch::manual_seed(4);
  at::Tensor logits = torch::randn({6, 5}, at::kDouble) * 3;
  logits[0] = at::tensor({800.0, 0.0, 0.0, 0.0, 0.0}, at::kDouble);  // certain
  logits[1] = at::tensor({0.0, 0.0, 0.0, 0.0, 800.0}, at::kDouble);
  const at::Tensor root = curvature_root(logits, Loss::cross_entropy, Curvature::softmax);
  ASSERT_EQ(root.sizes(), at::IntArrayRef({6, 5, 4}));
  EXPECT_LT((root.bmm(root.transpose(1, 2)) - softmax_hessians(logits)).abs().max().item<double>(),
            1e-15);
  EXPECT_FALSE(curvature_root(logits, Loss::squared, Curvature::softmax).defined());
  EXPECT_FALSE(curvature_root(logits, Loss::cross_entropy, Curvature::identity).defined());
}

TEST(Loss, TheTraceOfTheCurvatureTellsWhatIsNotCertain) {
  torch::manual_seed(6);
  at::Tensor logits = torch::randn({6, 5}, at::kDouble) * 3;
  logits[0] = at::tensor({800.0, 0.0, 0.0, 0.0, 0.0}, at::kDouble);  // certain
  const at::Tensor trace = curvature_trace(logits, Loss::cross_entropy, Curvature::softmax);
  const at::Tensor dense = softmax_hessians(logits).diagonal(0, 1, 2).sum(1);
  EXPECT_LT((trace - dense).abs().max().item<double>(), 1e-15);
  EXPECT_EQ(trace[0].item<double>(), 0);
  EXPECT_FALSE(curvature_trace(logits, Loss::squared, Curvature::softmax).defined());
  EXPECT_FALSE(curvature_trace(logits, Loss::cross_entropy, Curvature::identity).defined());
}

// R η = ρ has |η| = |R⁺ρ| where the model is right; where it is wrong, that has no limit.
TEST(Loss, ResidualsAreAsLongOnTheCurvatureAsWhatMakesThem) {
  const auto length = [](const at::Tensor& logits, std::int64_t label, Curvature curvature) {
    const at::Tensor rho = residuals(logits, at::tensor({label}, at::kLong), Loss::cross_entropy);
    return length_on_curvature(logits, rho, Loss::cross_entropy, curvature);
  };
  const auto exact = [](const at::Tensor& logits, std::int64_t label) {
    const at::Tensor root = curvature_root(logits, Loss::cross_entropy, Curvature::softmax)[0];
    const at::Tensor rho =
        residuals(logits, at::tensor({label}, at::kLong), Loss::cross_entropy)[0];
    return at::linalg_pinv(root).mv(rho).norm().item<double>();
  };
  const at::Tensor sure = at::tensor({4.0, 0.5, -1.0}, at::kDouble).unsqueeze(0);
  EXPECT_NEAR(length(sure, 0, Curvature::softmax), exact(sure, 0), 1e-12);
  EXPECT_NEAR(
      length(sure, 0, Curvature::identity),
      residuals(sure, at::tensor({0}, at::kLong), Loss::cross_entropy).norm().item<double>(),
      1e-15);
  const at::Tensor wrong = at::tensor({14.0, 0.5, -1.0}, at::kDouble).unsqueeze(0);
  EXPECT_GT(exact(wrong, 2), 100);
  EXPECT_LT(length(wrong, 2, Curvature::softmax), std::sqrt(2.0) + 1e-12);
  const at::Tensor certain = at::tensor({900.0, 0.0, 0.0}, at::kDouble).unsqueeze(0);
  EXPECT_EQ(length(certain, 0, Curvature::softmax), 0);
}

TEST(Loss, ResidualsAreTheGradientOfTheLossWithRespectToTheLogits) {
  torch::manual_seed(5);
  const at::Tensor labels = at::tensor({2, 0, 1, 2}, at::kLong);
  for (const Loss loss : {Loss::cross_entropy, Loss::squared}) {
    const at::Tensor logits = torch::randn({4, 3}, at::kDouble).requires_grad_();
    const at::Tensor value =
        loss == Loss::squared ? (logits - at::one_hot(labels, 3).to(at::kDouble)).square().sum() / 2
                              : at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
    const at::Tensor gradient = torch::autograd::grad({value}, {logits})[0];
    EXPECT_LT(relative_distance(residuals(logits, labels, loss), gradient), 1e-14);
  }
}

TEST(DualSolve, SolvesTheUnsymmetricSystemAsADenseSolverDoes) {
  const std::int64_t examples = 7, classes = 4;
  const at::Tensor theta = some_kernel(examples * classes);
  torch::manual_seed(6);
  const at::Tensor logits = torch::randn({examples, classes}, at::kDouble) * 2;
  const at::Tensor b = torch::randn({examples, classes}, at::kDouble);
  for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
    at::Tensor h = at::eye(examples * classes, at::kDouble);
    if (curvature == Curvature::softmax) {
      const at::Tensor blocks = softmax_hessians(logits);
      h.zero_();
      for (std::int64_t i = 0; i < examples; ++i) {
        h.narrow(0, i * classes, classes).narrow(1, i * classes, classes).copy_(blocks[i]);
      }
    }
    for (const double ridge : {0.01, 5.0}) {
      const DualSolution solution =
          solve_dual({theta, curvature_root(logits, Loss::cross_entropy, curvature)}, ridge, b);
      ASSERT_TRUE(solution.succeeded());
      const at::Tensor dense = at::linalg_solve(
          h.mm(theta) + ridge * at::eye(examples * classes, at::kDouble), b.reshape({-1, 1}));
      EXPECT_LT(relative_distance(solution.coefficients.reshape({-1}), dense.squeeze(1)), 1e-9);
      EXPECT_LT(solution.relative_residual, 1e-9);
    }
  }
}

TEST(DualSolve, AMatrixThatIsNotPositiveDefiniteIsToldNotThrown) {
  const at::Tensor theta = -some_kernel(6);
  const DualSolution solution = solve_dual({theta, {}}, 0.1, at::ones({2, 3}, at::kDouble));
  EXPECT_FALSE(solution.succeeded());
  EXPECT_FALSE(solution.coefficients.defined());
  EXPECT_EQ(refusal([&] {
              solve_dual({theta, {}}, 0, at::ones({2, 3}, at::kDouble));
            }),
            "ridge: 0, must be > 0");
}

TEST(DualSolve, TheKernelOfSomeExamplesHasTheirRowsAndColumns) {
  const at::Tensor theta = some_kernel(12);
  const at::Tensor part = kernel_of(theta, {3, 1}, 3);
  ASSERT_EQ(part.sizes(), at::IntArrayRef({6, 6}));
  EXPECT_EQ(part[0][4].item<double>(), theta[9][4].item<double>());
  EXPECT_TRUE(torch::equal(kernel_of(theta, {0, 1, 2, 3}, 3), theta));
}

}  // namespace
}  // namespace pumice
