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

// A diagonal matrix with a preconditioner that knows it up to a factor between 1 and 1/ν.
TEST(ConjugateGradients, TheErrorBoundBoundsThePreconditionedErrorAndIsNearIt) {
  const double ridge = 1e-2, smallest = 0.1;
  const DenseOperator dense(ill_conditioned(60, 6));
  const ShiftedOperator shifted(dense, ridge);
  const at::Tensor matrix = to_dense(shifted), b = random_vector(60);
  const at::Tensor exact = at::linalg_solve(matrix, b);
  // M = A^(−1/2) D A^(−1/2), D between ν and 20: MA has the eigenvalues of D.
  const auto [values, vectors] = at::linalg_eigh(matrix);
  const at::Tensor half = vectors.mm(values.rsqrt().diag()).mm(vectors.t());
  const at::Tensor spread = at::linspace(smallest, 20, 60, at::kDouble);
  const DenseOperator inverse(half.mm(spread.diag()).mm(half));
  double nearest = 1e9;
  for (std::int64_t iterations = 2; iterations <= 20; iterations += 3) {
    ConjugateGradientsOptions options{.relative_tolerance = std::nullopt,
                                      .error_tolerance = 0.999,
                                      .smallest_eigenvalue = ridge,
                                      .smallest_preconditioned_eigenvalue = smallest,
                                      .preconditioner = &inverse};
    // Told at each step; the tolerance is met by halves.
    options.go_on_to = [&](const at::Tensor& x, const ConjugateGradientsError& so_far) {
      const double error = energy_norm(matrix, x - exact);
      EXPECT_LE(error, so_far.bound * (1 + 1e-9));
      nearest = std::min(nearest, so_far.bound / error);
      return std::optional<double>(so_far.relative / static_cast<double>(iterations));
    };
    const auto [solution, summary] = conjugate_gradients(shifted, b, options);
    EXPECT_TRUE(summary.converged());
    EXPECT_LE(energy_norm(matrix, solution - exact), *summary.columns[0].error_bound * (1 + 1e-9));
  }
  EXPECT_LT(nearest, 2);
}

TEST(ConjugateGradients, GoOnToWhatIsNeededWithoutStartingAnew) {
  const double ridge = 1e-2;
  const DenseOperator dense(ill_conditioned(60, 6));
  const ShiftedOperator shifted(dense, ridge);
  const at::Tensor b = random_vector(60);
  const ConjugateGradientsOptions at_once{
      .relative_tolerance = std::nullopt, .error_tolerance = 1e-6, .smallest_eigenvalue = ridge};
  ConjugateGradientsOptions later = at_once;
  later.error_tolerance = 0.1;
  int asked = 0;
  later.go_on_to = [&](const at::Tensor& x, const ConjugateGradientsError& so_far) {
    EXPECT_EQ(x.numel(), 60);
    EXPECT_LE(so_far.relative, asked == 0 ? 0.1 : 1e-6);
    ++asked;
    return std::optional<double>(1e-6);
  };
  const auto once = conjugate_gradients(shifted, b, at_once);
  const auto twice = conjugate_gradients(shifted, b, later);
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(twice.summary.converged());
  EXPECT_EQ(twice.summary.iterations, once.summary.iterations);
  EXPECT_LE(*twice.summary.columns[0].relative_error_bound, 1e-6);

  // More digits than the numbers have: what was reached is taken.
  later.go_on_to = [](const at::Tensor&, const ConjugateGradientsError&) {
    return std::optional<double>(1e-30);
  };
  const auto in_vain = conjugate_gradients(shifted, b, later);
  EXPECT_TRUE(in_vain.summary.converged());
  EXPECT_LE(*in_vain.summary.columns[0].relative_error_bound, 0.1);
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
