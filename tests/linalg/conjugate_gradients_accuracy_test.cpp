// What conjugate gradients say about their own accuracy.
#include <gtest/gtest.h>

#include "linalg/known_matrices.h"
#include "pumice/linalg/conjugate_gradients.h"
#include "pumice/linalg/dense_operator.h"
#include "pumice/linalg/shifted_operator.h"

namespace pumice {
namespace {

using testing::ill_conditioned;
using testing::random_columns;
using testing::random_vector;
using testing::relative_residual;
using Termination = ConjugateGradientsTermination;

double energy_norm(const at::Tensor& matrix, const at::Tensor& x) {
  return std::sqrt(x.dot(matrix.matmul(x)).item<double>());
}

// As in a textbook, all in float32; the residual is the recursive one.
double recursive_residual_of_textbook(const at::Tensor& matrix, const at::Tensor& b, int iterations,
                                      at::Tensor& x) {
  x = at::zeros_like(b);
  at::Tensor r = b.clone(), p = b.clone();
  at::Tensor rr = r.dot(r);
  for (int i = 0; i < iterations; ++i) {
    const at::Tensor product = matrix.matmul(p);
    const at::Tensor alpha = rr / p.dot(product);
    x = x + alpha * p;
    r = r - alpha * product;
    const at::Tensor next = r.dot(r);
    p = r + next / rr * p;
    rr = next;
  }
  return (r.norm() / b.norm()).item<double>();
}

TEST(ConjugateGradients, DoNotBelieveTheRecursionInSinglePrecision) {
  const at::Tensor matrix = ill_conditioned(100, 5).to(at::kFloat);
  const at::Tensor b = random_vector(100).to(at::kFloat);
  const double tolerance = 1e-4;
  at::Tensor textbook;
  EXPECT_LT(recursive_residual_of_textbook(matrix, b, 2000, textbook), tolerance);
  EXPECT_GT(relative_residual(matrix, textbook, b), 10 * tolerance);

  for (const std::int64_t recompute_every : {50, 1'000'000}) {
    const auto [solution, summary] =
        conjugate_gradients(DenseOperator(matrix), b,
                            {.relative_tolerance = tolerance,
                             .max_iterations = 5000,
                             .residual_recompute_every = recompute_every});
    EXPECT_EQ(solution.scalar_type(), at::kFloat);
    EXPECT_FALSE(summary.converged()) << summary.brief();
    EXPECT_GT(summary.columns[0].relative_residual, tolerance);
    const double honest = relative_residual(matrix, solution, b);
    EXPECT_NEAR(summary.columns[0].relative_residual, honest, 0.2 * honest);
  }
}

TEST(ConjugateGradients, RecomputingTheResidualDoesNotDisturbASoundRecursion) {
  const at::Tensor matrix = ill_conditioned(100, 6), b = random_vector(100);
  const DenseOperator dense(matrix);
  const auto often =
      conjugate_gradients(dense, b, {.max_iterations = 5000, .residual_recompute_every = 5});
  const auto never = conjugate_gradients(
      dense, b, {.max_iterations = 5000, .residual_recompute_every = 1'000'000});
  EXPECT_TRUE(often.summary.converged());
  EXPECT_TRUE(at::equal(often.solution, never.solution));
  EXPECT_EQ(never.summary.operator_applications, never.summary.iterations + 1);
  EXPECT_EQ(often.summary.operator_applications,
            often.summary.iterations + (often.summary.iterations + 4) / 5);
}

TEST(ConjugateGradients, StopWhenTheAccuracyOfTheNumbersIsUsedUp) {
  const at::Tensor matrix = ill_conditioned(100, 3).to(at::kFloat);
  const at::Tensor b = random_vector(100).to(at::kFloat);
  const auto [solution, summary] = conjugate_gradients(
      DenseOperator(matrix), b, {.relative_tolerance = 1e-12, .max_iterations = 100'000});
  EXPECT_EQ(summary.termination, Termination::stagnated);
  EXPECT_LT(summary.iterations, 2000);
  EXPECT_LT(relative_residual(matrix, solution, b), 1e-3);
  EXPECT_GT(relative_residual(matrix, solution, b), 1e-12);
}

TEST(ConjugateGradients, ReachInSinglePrecisionWhatItAllows) {
  const at::Tensor matrix = ill_conditioned(100, 2).to(at::kFloat);
  const at::Tensor b = random_columns(100, 3).to(at::kFloat);
  const auto [solution, summary] =
      conjugate_gradients(DenseOperator(matrix), b, {.relative_tolerance = 1e-4});
  EXPECT_TRUE(summary.converged()) << summary.full();
  for (std::int64_t column = 0; column < 3; ++column) {
    EXPECT_LE(relative_residual(matrix, solution.select(1, column), b.select(1, column)), 1.01e-4);
  }
}

TEST(ConjugateGradients, TheErrorBoundBoundsTheError) {
  const double ridge = 1e-2;
  const DenseOperator dense(ill_conditioned(60, 6));
  const ShiftedOperator shifted(dense, ridge);
  const at::Tensor matrix = to_dense(shifted), b = random_vector(60);
  const at::Tensor exact = at::linalg_solve(matrix, b);
  for (std::int64_t iterations = 1; iterations <= 25; iterations += 3) {
    const auto [solution, summary] = conjugate_gradients(
        shifted, b, {.smallest_eigenvalue = ridge, .max_iterations = iterations});
    const double error = energy_norm(matrix, solution - exact);
    EXPECT_LE(error, *summary.columns[0].error_bound);
    EXPECT_LE(*summary.columns[0].error_bound, 100 * error);
    EXPECT_NEAR(*summary.columns[0].relative_error_bound,
                *summary.columns[0].error_bound / energy_norm(matrix, solution), 1e-12);
  }
}

TEST(ConjugateGradients, StopAtTheErrorThatWasAskedFor) {
  const double ridge = 1e-2;
  const DenseOperator dense(ill_conditioned(60, 6));
  const ShiftedOperator shifted(dense, ridge);
  const at::Tensor matrix = to_dense(shifted), b = random_vector(60);
  const at::Tensor exact = at::linalg_solve(matrix, b);
  const ConjugateGradientsOptions options{
      .relative_tolerance = std::nullopt, .error_tolerance = 1e-3, .smallest_eigenvalue = ridge};
  const auto [solution, summary] = conjugate_gradients(shifted, b, options);
  EXPECT_TRUE(summary.converged());
  EXPECT_LE(energy_norm(matrix, solution - exact), 1e-3 * energy_norm(matrix, exact));
  EXPECT_LE(*summary.columns[0].relative_error_bound, 1e-3);
  EXPECT_GT(*summary.columns[0].relative_error_bound, 1e-5);

  // With both tolerances, both hold.
  ConjugateGradientsOptions both = options;
  both.relative_tolerance = 1e-9;
  const auto strict = conjugate_gradients(shifted, b, both);
  EXPECT_LE(relative_residual(matrix, strict.solution, b), 1.001e-9);
  EXPECT_GT(strict.summary.iterations, summary.iterations);
}

}  // namespace
}  // namespace pumice
