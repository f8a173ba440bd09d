#include <gtest/gtest.h>

#include "contracts/linear_operator_contract.h"
#include "linalg/known_matrices.h"
#include "pumice/linalg/cholesky.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::hilbert;
using testing::ill_conditioned;
using testing::laplacian;
using testing::matrix_with_spectrum;
using testing::random_columns;
using testing::random_vector;
using testing::refusal;
using testing::relative_distance;

at::Tensor identity(std::int64_t n) {
  return at::eye(n, at::kDouble);
}

TEST(Cholesky, ItsFactorIsLowerTriangularAndGivesTheMatrix) {
  for (const at::Tensor& matrix : {laplacian(40), hilbert(6), ill_conditioned(300, 6)}) {
    const Cholesky cholesky = Cholesky::factorize(matrix);
    ASSERT_TRUE(cholesky.summary().succeeded);
    EXPECT_TRUE(at::equal(cholesky.factor(), cholesky.factor().tril()));
    EXPECT_GT(cholesky.factor().diagonal().min().item<double>(), 0);
    EXPECT_LT(relative_distance(cholesky.factor().matmul(cholesky.factor().t()), matrix), 1e-14);
  }
}

TEST(Cholesky, SolvesAsGaussianEliminationDoes) {
  const at::Tensor matrix = ill_conditioned(60, 3);
  const Cholesky cholesky = Cholesky::factorize(matrix);
  const at::Tensor b = random_columns(60, 4), vector = random_vector(60);
  EXPECT_LT(relative_distance(cholesky.solve(b), at::linalg_solve(matrix, b)), 1e-12);
  EXPECT_LT(relative_distance(cholesky.solve(vector), at::linalg_solve(matrix, vector)), 1e-12);
}

TEST(Cholesky, SolvesTheLaplacianToItsClosedForm) {
  // −x'' = 1 with x(0) = x(n+1) = 0: x_i = i (n+1−i)/2.
  const at::Tensor i = at::arange(1, 101, at::kDouble);
  const Cholesky cholesky = Cholesky::factorize(laplacian(100));
  EXPECT_LT(relative_distance(cholesky.solve(at::ones({100}, at::kDouble)), i * (101 - i) / 2),
            1e-12);
}

TEST(Cholesky, LogDeterminantsAreThoseOfTheFormulas) {
  EXPECT_NEAR(Cholesky::factorize(laplacian(99)).log_determinant(), std::log(100.0), 1e-12);
  EXPECT_NEAR(Cholesky::factorize(hilbert(5)).log_determinant(), -std::log(266'716'800'000.0),
              1e-10);
  // The determinant itself would underflow.
  EXPECT_NEAR(Cholesky::factorize(1e-3 * identity(500)).log_determinant(), 500 * std::log(1e-3),
              1e-9);
}

TEST(Cholesky, ItsConditionEstimateIsALowerBound) {
  const Cholesky diagonal =
      Cholesky::factorize(at::diag(at::tensor({4.0, 1.0, 0.01}, at::kDouble)));
  EXPECT_NEAR(diagonal.condition_estimate(), 400, 1e-9);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Cholesky cholesky = Cholesky::factorize(ill_conditioned(50, 5, seed));
    EXPECT_LE(cholesky.condition_estimate(), 1e5);
    EXPECT_GT(cholesky.condition_estimate(), 1e2);
  }
}

TEST(Cholesky, AFailureNamesMinorPivotEigenvalueAndRidge) {
  // Pivots 1 and 1 − 2·2 = −3; eigenvalues 3 and −1.
  const Cholesky cholesky =
      Cholesky::factorize(at::tensor({1.0, 2.0, 2.0, 1.0}, at::kDouble).reshape({2, 2}));
  const CholeskySummary& summary = cholesky.summary();
  EXPECT_FALSE(summary.succeeded);
  EXPECT_EQ(summary.failed_minor, 2);
  EXPECT_DOUBLE_EQ(*summary.failed_pivot, -3);
  EXPECT_DOUBLE_EQ(*summary.necessary_ridge, 0.6);  // v = (−2, 1)
  EXPECT_NEAR(*summary.smallest_eigenvalue, -1, 1e-14);
  EXPECT_NEAR(*summary.sufficient_ridge, 1, 1e-13);
  EXPECT_EQ(
      summary.brief(),
      "not positive definite: pivot 2 of 2 is -3, the diagonal goes from 1 to 1, its smallest "
      "eigenvalue is -1, it needs a ridge of 1.01");
  EXPECT_TRUE(summary.full().find("  failed minor         2\n  its pivot            -3\n") !=
              std::string::npos)
      << summary.full();
}

TEST(Cholesky, TheFirstBadMinorIsFoundInALargeMatrix) {
  at::Tensor matrix = ill_conditioned(300, 2);
  // Only row and column 200 change: the pivot falls by 10 from what it was.
  const Cholesky before = Cholesky::factorize(matrix);
  const double pivot = std::pow(before.factor()[199][199].item<double>(), 2);
  matrix[199][199] -= 10;
  const CholeskySummary summary = Cholesky::factorize(matrix).summary();
  EXPECT_EQ(summary.failed_minor, 200);
  EXPECT_NEAR(*summary.failed_pivot, pivot - 10, 1e-11);
  EXPECT_DOUBLE_EQ(summary.smallest_diagonal, matrix[199][199].item<double>());
}

TEST(Cholesky, TheRidgeItNamesIsNeededAndEnough) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const at::Tensor spectrum = at::linspace(-0.3, 5, 80, at::kDouble);
    const at::Tensor matrix = matrix_with_spectrum(spectrum, seed);
    const CholeskySummary summary = Cholesky::factorize(matrix).summary();
    ASSERT_FALSE(summary.succeeded);
    EXPECT_NEAR(*summary.smallest_eigenvalue, -0.3, 1e-12);
    EXPECT_LE(*summary.necessary_ridge, 0.3 + 1e-12);
    EXPECT_GT(*summary.necessary_ridge, 0);
    const auto with_ridge = [&](double ridge) {
      return Cholesky::factorize(matrix + ridge * identity(80)).summary().succeeded;
    };
    EXPECT_TRUE(with_ridge(*summary.sufficient_ridge));
    EXPECT_FALSE(with_ridge(*summary.necessary_ridge * 0.999));
    EXPECT_FALSE(with_ridge(0.2999));
  }
}

TEST(Cholesky, ASingularMatrixGetsARidgeOfRoundingSize) {
  const at::Tensor matrix = at::ones({50, 50}, at::kDouble);
  const CholeskySummary summary = Cholesky::factorize(matrix).summary();
  ASSERT_FALSE(summary.succeeded);
  EXPECT_EQ(summary.failed_minor, 2);
  EXPECT_EQ(*summary.failed_pivot, 0);
  EXPECT_EQ(*summary.necessary_ridge, 0);
  EXPECT_LT(*summary.sufficient_ridge, 1e-10);
  EXPECT_TRUE(
      Cholesky::factorize(matrix + *summary.sufficient_ridge * identity(50)).summary().succeeded);
}

TEST(Cholesky, WithoutEigenvaluesAFailureStillNamesALowerBoundOfTheRidge) {
  const at::Tensor matrix = at::tensor({1.0, 2.0, 2.0, 1.0}, at::kDouble).reshape({2, 2});
  const CholeskySummary summary = Cholesky::factorize(matrix, {.eigenvalues_up_to = 1}).summary();
  EXPECT_FALSE(summary.smallest_eigenvalue || summary.sufficient_ridge);
  EXPECT_EQ(summary.brief(),
            "not positive definite: pivot 2 of 2 is -3, the diagonal goes from 1 to 1, it needs a "
            "ridge above 0.6");
}

TEST(Cholesky, TheMatrixStaysUntouched) {
  const at::Tensor matrix = laplacian(20), copy = matrix.clone();
  Cholesky::factorize(matrix);
  EXPECT_TRUE(at::equal(matrix, copy));
}

TEST(Cholesky, WhatIsNoMatrixForItIsRefused) {
  at::Tensor matrix = laplacian(3);
  EXPECT_EQ(refusal([&] { Cholesky::factorize(matrix.to(at::kFloat)); }),
            "matrix: type Float, must be float64 for a Cholesky factorization");
  EXPECT_EQ(refusal([&] { Cholesky::factorize(matrix[0]); }),
            "matrix: shape [3], must be n×n with n >= 1");
  const Cholesky cholesky = Cholesky::factorize(matrix);
  EXPECT_EQ(refusal([&] { cholesky.solve(at::zeros({4}, at::kDouble)); }),
            "operand: shape [4], must be [3] or [3, k]");
  matrix[0][2] = std::nan("");
  EXPECT_EQ(refusal([&] { Cholesky::factorize(matrix); }),
            "matrix: element (0, 2) is nan, must be finite");
  matrix[0][2] = 1;
  EXPECT_EQ(refusal([&] { Cholesky::factorize(matrix); }),
            "matrix: element (0, 2) = 1, its mirror image = 0, must be equal within 1e-10 of the "
            "largest element, 2");
}

}  // namespace
}  // namespace pumice
