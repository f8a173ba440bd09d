#include "pumice/forgetting/solve_goals.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "pumice/linalg/dense_operator.h"

namespace pumice {
namespace {

// Eigenvalues from 1 to 10,000, so that iterations tell.
struct Problem {
  DenseOperator matrix{at::diag(at::logspace(0, 4, 60, 10, at::kDouble))};
  at::Tensor b = at::ones({60}, at::kDouble);
  ConjugateGradientsOptions options{
      .relative_tolerance = std::nullopt, .error_tolerance = 0.1, .smallest_eigenvalue = 1.0};
  std::int64_t rounds = 0, iterations = 0;

  RoundsResult solve(double goal) {
    return solve_in_rounds(
        matrix, b, options, [=](const at::Tensor&, const SolveError&) { return goal; },
        [&](const ConjugateGradientsResult& result) {
          ++rounds;
          iterations += result.summary.iterations;
        });
  }
};

TEST(SolveGoals, ASolveGoesOnFromWhereItWasUntilTheGoal) {
  Problem once, twice;
  EXPECT_TRUE(once.solve(1).near_enough);
  EXPECT_EQ(once.rounds, 1);
  const RoundsResult result = twice.solve(1e-8);
  EXPECT_TRUE(result.converged);
  EXPECT_TRUE(result.near_enough);
  EXPECT_EQ(twice.rounds, 2);
  EXPECT_GT(twice.iterations, once.iterations);
  const at::Tensor exact = twice.b / twice.matrix.apply(at::ones({60}, at::kDouble));
  EXPECT_LT((result.nearest.solution - exact).norm().item<double>(), 1e-7);
}

TEST(SolveGoals, IterationsThatEndBeforeTheToleranceAreAFailureBeforeTheGoalOnlyAreNot) {
  Problem problem;
  problem.solve(1);
  problem.options.max_iterations = problem.iterations;  // enough for the first round only
  const RoundsResult far = problem.solve(1e-12);
  EXPECT_TRUE(far.converged) << far.explanation;
  EXPECT_FALSE(far.near_enough);
  EXPECT_LT(*far.nearest.summary.columns.front().relative_error_bound, 0.1);
  problem.options.max_iterations = problem.options.max_iterations / 2;
  const RoundsResult unfinished = problem.solve(1e-12);
  EXPECT_FALSE(unfinished.converged);
  EXPECT_FALSE(unfinished.near_enough);
  EXPECT_TRUE(unfinished.out_of_iterations);
  EXPECT_NE(unfinished.explanation.find("iterations"), std::string::npos);
}

// Its products are exact until it is told otherwise.
class Worsening final : public LinearOperator {
 public:
  explicit Worsening(const LinearOperator& exact) : exact_(exact) {}
  std::int64_t size() const override { return exact_.size(); }
  at::Tensor apply(const at::Tensor& x) const override {
    const at::Tensor y = exact_.apply(x);
    if (!rounds) return y;
    return y + 0.2 * y.norm() * at::ones_like(y) / std::sqrt(static_cast<double>(y.numel()));
  }
  at::Tensor diagonal() const override { return exact_.diagonal(); }

  bool rounds = false;

 private:
  const LinearOperator& exact_;
};

TEST(SolveGoals, ARoundThatMovedAwayIsNotTaken) {
  Problem problem;
  Worsening matrix(problem.matrix);
  at::Tensor first;
  problem.options.error_tolerance = 1e-3;
  const RoundsResult result = solve_in_rounds(
      matrix, problem.b, problem.options, [](const at::Tensor&, const SolveError&) { return 1e-6; },
      [&](const ConjugateGradientsResult& round) {
        if (!matrix.rounds) first = round.solution.clone();
        matrix.rounds = true;
      });
  EXPECT_TRUE(result.converged);
  EXPECT_FALSE(result.near_enough);
  EXPECT_TRUE(at::equal(result.nearest.solution, first));
}

TEST(SolveGoals, WhereRoundingEndsASolveTheNearestRoundIsTaken) {
  Problem problem;
  torch::manual_seed(1);
  // Conditioned so badly that float64 ends before the smallest goal there is.
  const at::Tensor turn = std::get<0>(at::linalg_qr(at::randn({60, 60}, at::kDouble)));
  const at::Tensor eigenvalues = at::logspace(0, 8, 60, 10, at::kDouble);
  const at::Tensor turned = at::matmul(turn * eigenvalues, turn.t());
  problem.matrix = DenseOperator((turned + turned.t()) / 2);
  const RoundsResult result = problem.solve(1e-30);
  EXPECT_TRUE(result.converged) << result.explanation;
  EXPECT_FALSE(result.near_enough);
  EXPECT_LT(*result.nearest.summary.columns.front().relative_error_bound, 1e-4);
}

}  // namespace
}  // namespace pumice
