#include "pumice/linalg/conjugate_gradients.h"

#include <gtest/gtest.h>

#include "contracts/linear_operator_contract.h"
#include "linalg/known_matrices.h"
#include "pumice/linalg/dense_operator.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::ill_conditioned;
using testing::laplacian;
using testing::matrix_with_spectrum;
using testing::random_columns;
using testing::random_vector;
using testing::refusal;
using testing::relative_distance;
using testing::relative_residual;
using Termination = ConjugateGradientsTermination;

// Remembers how many columns each application had.
class Counting : public LinearOperator {
 public:
  explicit Counting(const at::Tensor& matrix) : dense_(matrix) {}
  std::int64_t size() const override { return dense_.size(); }
  at::Tensor apply(const at::Tensor& x) const override {
    columns.push_back(x.dim() == 2 ? x.size(1) : 1);
    return dense_.apply(x);
  }
  at::Tensor diagonal() const override { return dense_.diagonal(); }

  mutable std::vector<std::int64_t> columns;

 private:
  DenseOperator dense_;
};

TEST(ConjugateGradients, NeedAsManyStepsAsThereAreDistinctEigenvalues) {
  const at::Tensor spectrum = at::tensor({1.0, 2.0, 5.0}, at::kDouble).repeat({10});
  const at::Tensor matrix = matrix_with_spectrum(spectrum), b = random_vector(30);
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), b, {.relative_tolerance = 1e-12});
  EXPECT_TRUE(summary.converged());
  EXPECT_EQ(summary.iterations, 3);
  EXPECT_LT(relative_distance(solution, at::linalg_solve(matrix, b)), 1e-11);
}

TEST(ConjugateGradients, AreExactInAsManyStepsAsDimensions) {
  const at::Tensor matrix = laplacian(20), b = random_vector(20);
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), b, {.relative_tolerance = 1e-11});
  EXPECT_TRUE(summary.converged());
  EXPECT_EQ(summary.iterations, 20);
  EXPECT_LT(relative_distance(solution, at::linalg_solve(matrix, b)), 1e-10);
}

TEST(ConjugateGradients, SolveTheLaplacianToItsClosedForm) {
  const at::Tensor i = at::arange(1, 101, at::kDouble);
  const auto [solution, summary] = conjugate_gradients(
      DenseOperator(laplacian(100)), at::ones({100}, at::kDouble), {.relative_tolerance = 1e-12});
  EXPECT_TRUE(summary.converged());
  EXPECT_LT(relative_distance(solution, i * (101 - i) / 2), 1e-10);
}

TEST(ConjugateGradients, SeveralRightHandSidesEqualSingleSolves) {
  const at::Tensor matrix = ill_conditioned(50, 1.5), b = random_columns(50, 4);
  b.select(1, 2) *= 1e6;
  const DenseOperator dense(matrix);
  const auto [together, summary] = conjugate_gradients(dense, b);
  ASSERT_EQ(summary.columns.size(), 4);
  EXPECT_TRUE(summary.converged());
  for (std::int64_t column = 0; column < 4; ++column) {
    const auto [alone, own] = conjugate_gradients(dense, b.select(1, column));
    EXPECT_LT(relative_distance(together.select(1, column), alone), 1e-7);
    EXPECT_NEAR(summary.columns[column].iterations, own.iterations, 1);
    EXPECT_LE(relative_residual(matrix, together.select(1, column), b.select(1, column)), 1.001e-8);
  }
}

TEST(ConjugateGradients, TheOperatorIsAppliedToUnfinishedColumnsOnly) {
  const at::Tensor spectrum = at::tensor({1.0, 2.0, 5.0}, at::kDouble).repeat({10});
  const at::Tensor matrix = matrix_with_spectrum(spectrum);
  const at::Tensor eigenvectors = std::get<1>(at::linalg_eigh(matrix));
  // One eigenvector, two of different eigenvalues, zero, and all three eigenvalues.
  const at::Tensor b =
      at::stack({eigenvectors.select(1, 0), eigenvectors.select(1, 0) + eigenvectors.select(1, 29),
                 at::zeros({30}, at::kDouble), random_vector(30)},
                1);
  const Counting counting(matrix);
  const auto [solution, summary] = conjugate_gradients(counting, b);
  ASSERT_TRUE(summary.converged());
  EXPECT_EQ(summary.columns[0].iterations, 1);
  EXPECT_EQ(summary.columns[1].iterations, 2);
  EXPECT_EQ(summary.columns[2].iterations, 0);
  EXPECT_EQ(summary.columns[3].iterations, 3);
  // Each iteration, and after it the residual of the column that has got there.
  EXPECT_EQ(counting.columns, (std::vector<std::int64_t>{3, 1, 2, 1, 1, 1}));
  EXPECT_EQ(summary.operator_applications, 9);
  EXPECT_LT(relative_distance(solution, at::linalg_solve(matrix, b)), 1e-7);
}

TEST(ConjugateGradients, APerfectPreconditionerNeedsOneIteration) {
  const at::Tensor matrix = ill_conditioned(50, 4), b = random_columns(50, 2);
  const at::Tensor inverse = at::linalg_inv(matrix);
  const DenseOperator perfect((inverse + inverse.t()) / 2);
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), b, {.preconditioner = &perfect});
  EXPECT_TRUE(summary.converged());
  EXPECT_EQ(summary.iterations, 1);
  EXPECT_LT(relative_distance(solution, at::linalg_solve(matrix, b)), 1e-8);
}

TEST(ConjugateGradients, APreconditionerSavesIterations) {
  // A badly scaled matrix: its diagonal alone tells most of it.
  const at::Tensor scale = at::logspace(-2, 2, 80, 10, at::kDouble);
  const at::Tensor matrix = scale.unsqueeze(1) * (laplacian(80) + at::eye(80, at::kDouble)) * scale;
  const at::Tensor b = random_vector(80);
  const DenseOperator dense(matrix);
  const DenseOperator preconditioner(at::diag(1 / dense.diagonal()));
  const auto plain = conjugate_gradients(dense, b, {.max_iterations = 10'000});
  const auto helped = conjugate_gradients(dense, b, {.preconditioner = &preconditioner});
  EXPECT_TRUE(helped.summary.converged());
  EXPECT_LT(3 * helped.summary.iterations, plain.summary.iterations);
  EXPECT_LE(relative_residual(matrix, helped.solution, b), 1.001e-8);
}

TEST(ConjugateGradients, AnIndefiniteOperatorBreaksDownWithAReason) {
  const at::Tensor matrix = at::diag(at::tensor({1.0, 2.0, -1.0}, at::kDouble));
  const at::Tensor good = at::tensor({1.0, 1.0, 0.0}, at::kDouble);
  const at::Tensor bad = at::tensor({0.0, 0.0, 1.0}, at::kDouble);
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), at::stack({bad, good}, 1));
  EXPECT_EQ(summary.termination, Termination::breakdown);
  EXPECT_EQ(summary.columns[1].termination, Termination::converged);
  EXPECT_EQ(summary.columns[0].termination, Termination::breakdown);
  EXPECT_EQ(summary.columns[0].explanation,
            "pᵀAp = -1 after 0 iterations: the operator is not positive definite");
  EXPECT_DOUBLE_EQ(summary.columns[0].relative_residual, 1);
  EXPECT_LT(relative_distance(solution.select(1, 1), at::tensor({1.0, 0.5, 0.0}, at::kDouble)),
            1e-8);
  EXPECT_TRUE(at::equal(solution.select(1, 0), at::zeros({3}, at::kDouble)));
  EXPECT_TRUE(summary.brief().starts_with("not converged: broke down after 2 iterations in "));
  EXPECT_TRUE(
      summary.brief().ends_with(" s, relative residual 1 at most, 1 of 2 columns converged (" +
                                summary.columns[0].explanation + ")"));
}

TEST(ConjugateGradients, APreconditionerThatIsNotPositiveBreaksDown) {
  const DenseOperator matrix(laplacian(5)), negative(-at::eye(5, at::kDouble));
  const auto [solution, summary] =
      conjugate_gradients(matrix, at::ones({5}, at::kDouble), {.preconditioner = &negative});
  EXPECT_EQ(summary.columns[0].explanation,
            "rᵀMr = -5 after 0 iterations: the preconditioner is not positive definite");
}

// Gives NaN from the given application on.
class Failing : public LinearOperator {
 public:
  explicit Failing(int sound_applications) : left_(sound_applications) {}
  std::int64_t size() const override { return 30; }
  at::Tensor apply(const at::Tensor& x) const override {
    return left_-- > 0 ? laplacian(30).matmul(x) : at::full_like(x, std::nan(""));
  }
  at::Tensor diagonal() const override { return laplacian(30).diagonal(); }

 private:
  mutable int left_;
};

TEST(ConjugateGradients, AnOperatorThatTurnsIntoNansBreaksDownAndTheIterateStaysFinite) {
  for (const int sound : {0, 3, 10}) {  // the 10th iteration is followed by a recomputed residual
    const auto [solution, summary] =
        conjugate_gradients(Failing(sound), random_vector(30), {.residual_recompute_every = 10});
    EXPECT_EQ(summary.termination, Termination::breakdown);
    EXPECT_EQ(summary.iterations, sound);
    EXPECT_TRUE(std::isnan(summary.columns[0].relative_residual));
    EXPECT_TRUE(std::isnan(summary.largest_relative_residual()));
    EXPECT_TRUE(at::isfinite(solution).all().item<bool>());
    EXPECT_TRUE(summary.columns[0].explanation.ends_with("not finite"));
  }
}

TEST(ConjugateGradients, AZeroRightHandSideHasTheSolutionZeroAtNoCost) {
  const Counting counting(laplacian(5));
  const at::Tensor zero = at::zeros({5}, at::kDouble);
  for (const auto& guess :
       {std::optional<at::Tensor>(), std::optional(at::ones({5}, at::kDouble))}) {
    const auto [solution, summary] =
        conjugate_gradients(counting, zero, {.smallest_eigenvalue = 0.1, .initial_guess = guess});
    EXPECT_TRUE(summary.converged());
    EXPECT_EQ(summary.iterations, 0);
    EXPECT_EQ(summary.columns[0].relative_residual, 0);
    EXPECT_EQ(summary.columns[0].error_bound, 0);
    EXPECT_TRUE(at::equal(solution, zero));
  }
  EXPECT_TRUE(counting.columns.empty());
}

TEST(ConjugateGradients, AnInitialGuessAtTheSolutionNeedsNoIteration) {
  const at::Tensor matrix = ill_conditioned(40, 2), b = random_columns(40, 2);
  const at::Tensor exact = at::linalg_solve(matrix, b);
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), b, {.initial_guess = exact});
  EXPECT_TRUE(summary.converged());
  EXPECT_EQ(summary.iterations, 0);
  EXPECT_EQ(summary.operator_applications, 2);
  EXPECT_TRUE(at::equal(solution, exact));
}

TEST(ConjugateGradients, TheInitialGuessStaysUntouchedAndAnyLeadsToTheSolution) {
  const at::Tensor matrix = ill_conditioned(40, 2), b = random_vector(40);
  const at::Tensor guess = 100 * random_vector(40, 5), copy = guess.clone(), b_copy = b.clone();
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), b, {.initial_guess = guess});
  EXPECT_TRUE(summary.converged());
  EXPECT_LE(relative_residual(matrix, solution, b), 1.001e-8);
  EXPECT_TRUE(at::equal(guess, copy));
  EXPECT_TRUE(at::equal(b, b_copy));
}

TEST(ConjugateGradients, TheCallbackStopsAndCanKeepACheckpoint) {
  const at::Tensor matrix = ill_conditioned(40, 3), b = random_columns(40, 2);
  const DenseOperator dense(matrix);
  std::vector<std::int64_t> iterations;
  at::Tensor checkpoint;
  const auto [solution, summary] = conjugate_gradients(
      dense, b, {.on_iteration = [&](const ConjugateGradientsProgress& progress) {
        iterations.push_back(progress.iteration);
        EXPECT_EQ(progress.active_columns, 2);
        EXPECT_EQ(progress.operator_applications, 2 * progress.iteration);
        checkpoint = progress.solution();
        return progress.iteration < 5;
      }});
  EXPECT_EQ(summary.termination, Termination::stopped);
  EXPECT_EQ(iterations, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(summary.iterations, 5);
  EXPECT_TRUE(at::equal(checkpoint, solution));
  for (std::int64_t column = 0; column < 2; ++column) {
    const double honest =
        relative_residual(matrix, solution.select(1, column), b.select(1, column));
    EXPECT_NEAR(summary.columns[column].relative_residual, honest, 1e-10);
  }
  const auto continued = conjugate_gradients(dense, b, {.initial_guess = checkpoint});
  EXPECT_TRUE(continued.summary.converged());
}

TEST(ConjugateGradients, RunningOutOfIterationsIsSaid) {
  const at::Tensor matrix = ill_conditioned(40, 4), b = random_vector(40);
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), b, {.max_iterations = 3});
  EXPECT_EQ(summary.termination, Termination::max_iterations);
  EXPECT_EQ(summary.iterations, 3);
  EXPECT_EQ(summary.operator_applications, 4);
  EXPECT_NEAR(summary.columns[0].relative_residual, relative_residual(matrix, solution, b), 1e-10);
  EXPECT_TRUE(
      summary.brief().starts_with("not converged: out of iterations after 3 iterations in "));
  EXPECT_TRUE(summary.full().find("  column 0: not converged: out of iterations after 3, relative "
                                  "residual ") != std::string::npos)
      << summary.full();
}

TEST(ConjugateGradients, TheSameSolveGivesTheSameBits) {
  const at::Tensor matrix = ill_conditioned(100, 3), b = random_columns(100, 3);
  const DenseOperator dense(matrix);
  EXPECT_TRUE(
      at::equal(conjugate_gradients(dense, b).solution, conjugate_gradients(dense, b).solution));
}

TEST(ConjugateGradients, WhatDoesNotFitIsRefusedWithTheRule) {
  const DenseOperator matrix(laplacian(3)), larger(laplacian(4));
  const at::Tensor b = at::ones({3}, at::kDouble);
  const auto refused = [&](const at::Tensor& right, const ConjugateGradientsOptions& options) {
    return refusal([&] { conjugate_gradients(matrix, right, options); });
  };
  EXPECT_EQ(refused(at::ones({4}, at::kDouble), {}),
            "right-hand side: shape [4], must be [3] or [3, k] with k >= 1");
  EXPECT_EQ(refused(at::ones({3, 0}, at::kDouble), {}),
            "right-hand side: shape [3, 0], must be [3] or [3, k] with k >= 1");
  EXPECT_EQ(refused(at::ones({3}, at::kHalf), {}),
            "right-hand side: type Half, must be float64 or float32");
  EXPECT_EQ(refused(b / 0, {}), "right-hand side: holds a number that is not finite, must not");
  EXPECT_EQ(refused(b * 1e-200, {}),
            "right-hand side: norm of column 0 is 0, its square must be in the range of float64; "
            "scale the problem");
  EXPECT_EQ(refused(b, {.relative_tolerance = 0}), "relative_tolerance: 0, must be finite and > 0");
  EXPECT_EQ(refused(b, {.relative_tolerance = std::nullopt}),
            "relative_tolerance, error_tolerance: neither is set, one must be");
  EXPECT_EQ(refused(b, {.error_tolerance = 0.1}),
            "error_tolerance: 0.1, needs smallest_eigenvalue");
  EXPECT_EQ(refused(b, {.smallest_eigenvalue = -1}),
            "smallest_eigenvalue: -1, must be finite and > 0");
  EXPECT_EQ(refused(b, {.max_iterations = 0}), "max_iterations: 0, must be >= 1");
  EXPECT_EQ(refused(b, {.residual_recompute_every = 0}),
            "residual_recompute_every: 0, must be >= 1");
  EXPECT_EQ(refused(b, {.preconditioner = &larger}),
            "preconditioner: size 4, must be 3 as the operator's");
  EXPECT_EQ(refused(b, {.initial_guess = at::ones({3, 1}, at::kDouble)}),
            "initial_guess: shape [3, 1] and type Double, must be [3] and Double as the right-hand "
            "side's");
}

TEST(ConjugateGradients, AgreedScalarsKeepProcessesThatRoundDifferentlyInStep) {
  const at::Tensor matrix = ill_conditioned(60, 3.0), b = random_vector(60);
  std::vector<at::Tensor> said;
  ConjugateGradientsOptions first{.relative_tolerance = 1e-6};
  first.agreed = [&](at::Tensor own) {
    said.push_back(own.clone());
    return own;
  };
  const auto one = conjugate_gradients(DenseOperator(matrix), b, first);
  // Far more than another processor would round differently; it would not even take as many steps.
  const DenseOperator other(matrix * (1 + 1e-4));
  ConjugateGradientsOptions second{.relative_tolerance = 1e-6};
  const auto own_way = conjugate_gradients(DenseOperator(matrix.to(at::kFloat)), b.to(at::kFloat),
                                           {.relative_tolerance = 1e-6});
  EXPECT_NE(own_way.summary.operator_applications, one.summary.operator_applications);
  std::size_t asked = 0;
  second.agreed = [&](const at::Tensor& own) {
    EXPECT_EQ(own.numel(), said.at(asked).numel());
    return said.at(asked++);
  };
  const auto two = conjugate_gradients(other, b, second);
  EXPECT_EQ(asked, said.size());
  EXPECT_EQ(two.summary.iterations, one.summary.iterations);
  EXPECT_EQ(two.summary.operator_applications, one.summary.operator_applications);
  EXPECT_TRUE(two.summary.converged());
}

}  // namespace
}  // namespace pumice
