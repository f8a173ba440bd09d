#include "pumice/evaluation/gaussian_divergence.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "evaluation/small_audits.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;
using testing::textbook_divergence;

at::Tensor vector(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

at::Tensor random_covariance(std::int64_t size, std::int64_t seed) {
  torch::manual_seed(seed);
  const at::Tensor root = torch::randn({size, size + 2}, at::kDouble);
  return root.mm(root.t()) / static_cast<double>(size);
}

TEST(GaussianDivergence, OneDimensionHasItsClosedForm) {
  // KL(N(1, 4) ‖ N(3, 9)) = ½ [4/9 + 4/9 − log(4/9) − 1]
  const GaussianDivergence result = diagonal_divergence(vector({-2}), vector({4}), vector({9}));
  EXPECT_NEAR(result.quadratic, 0.5 * 4 / 9, 1e-15);
  EXPECT_NEAR(result.spread, 0.5 * (4.0 / 9 - std::log(4.0 / 9) - 1), 1e-15);
  EXPECT_NEAR(result.nats(), result.quadratic + result.spread, 1e-15);
  EXPECT_EQ(result.dimension, 1);
  EXPECT_TRUE(result.finite());
}

TEST(GaussianDivergence, EqualDistributionsHaveNone) {
  const at::Tensor zero = at::zeros({5}, at::kDouble);
  const at::Tensor variance = vector({1, 2, 3, 1e-9, 1e9});
  EXPECT_EQ(diagonal_divergence(zero, variance, variance).nats(), 0);
  const at::Tensor covariance = random_covariance(5, 1);
  EXPECT_NEAR(dense_divergence(zero, covariance, covariance).nats(), 0, 1e-13);
}

TEST(GaussianDivergence, NearlyEqualVariancesKeepTheirDigits) {
  // t − log1p(t) ≈ t²/2: with t = 1e-6 the naive ratio − log(ratio) − 1 has four digits left.
  const at::Tensor ones = at::ones({1000}, at::kDouble);
  const double t = 1e-6;
  const double expected = 0.5 * 1000 * (t * t / 2 - t * t * t / 3);
  const double spread = diagonal_divergence(at::zeros({1000}, at::kDouble), ones + t, ones).spread;
  EXPECT_NEAR(spread / expected, 1, 1e-3);
}

TEST(GaussianDivergence, DenseEqualsDiagonalOnDiagonalMatrices) {
  torch::manual_seed(2);
  const at::Tensor difference = torch::randn({6}, at::kDouble);
  const at::Tensor variance = torch::rand({6}, at::kDouble) + 0.1;
  const at::Tensor reference = torch::rand({6}, at::kDouble) + 0.1;
  const GaussianDivergence diagonal = diagonal_divergence(difference, variance, reference);
  const GaussianDivergence dense =
      dense_divergence(difference, at::diag(variance), at::diag(reference));
  EXPECT_NEAR(dense.quadratic, diagonal.quadratic, 1e-12);
  EXPECT_NEAR(dense.spread, diagonal.spread, 1e-12);
}

TEST(GaussianDivergence, DenseEqualsTheTextbooksInverseAndDeterminants) {
  for (const std::int64_t size : {1, 2, 7, 20}) {
    const at::Tensor covariance = random_covariance(size, 3);
    const at::Tensor reference = random_covariance(size, 4);
    const at::Tensor difference = torch::randn({size}, at::kDouble);
    const double expected = textbook_divergence(difference, covariance, reference);
    EXPECT_NEAR(dense_divergence(difference, covariance, reference).nats() / expected, 1, 1e-9);
  }
}

TEST(GaussianDivergence, MonteCarloAgreesWithinItsStandardError) {
  const std::int64_t size = 4, draws = 20'000;
  const at::Tensor covariance = random_covariance(size, 5);
  const at::Tensor reference = random_covariance(size, 6) + at::eye(size, at::kDouble);
  const at::Tensor difference = 0.5 * torch::randn({size}, at::kDouble);
  const auto log_density = [](const at::Tensor& x, const at::Tensor& matrix) {
    return -0.5 * (x.mm(at::linalg_inv(matrix)) * x).sum(1) - 0.5 * at::logdet(matrix);
  };
  // x − m ~ N(0, S), and x − m0 = x − m + Δ.
  const at::Tensor noise =
      torch::randn({draws, size}, at::kDouble).mm(at::linalg_cholesky(covariance).t());
  const at::Tensor ratios =
      log_density(noise, covariance) - log_density(noise + difference, reference);
  const double error = (ratios.std() / std::sqrt(static_cast<double>(draws))).item<double>();
  const double expected = dense_divergence(difference, covariance, reference).nats();
  EXPECT_NEAR(ratios.mean().item<double>(), expected, 4 * error);
  EXPECT_LT(error, 0.05 * expected);
}

TEST(GaussianDivergence, LeadingBlocksComeAtOnceAndNeverDecrease) {
  const at::Tensor covariance = random_covariance(12, 7);
  const at::Tensor reference = random_covariance(12, 8);
  const at::Tensor difference = torch::randn({12}, at::kDouble);
  const auto nested = nested_divergences(difference, covariance, reference, 3);
  ASSERT_EQ(nested.size(), 4u);
  double last = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t k = 3 * (i + 1);
    const auto leading = [&](const at::Tensor& matrix) {
      return matrix.narrow(0, 0, k).narrow(1, 0, k).clone();
    };
    const GaussianDivergence& result = nested[static_cast<std::size_t>(i)];
    const GaussianDivergence alone =
        dense_divergence(difference.narrow(0, 0, k), leading(covariance), leading(reference));
    EXPECT_NEAR(result.quadratic / alone.quadratic, 1, 1e-10);
    EXPECT_NEAR(result.spread / alone.spread, 1, 1e-10);
    EXPECT_EQ(result.dimension, k);
    EXPECT_GE(result.nats(), last);
    last = result.nats();
  }
}

TEST(GaussianDivergence, ZeroVarianceIsInfiniteWithAReason) {
  for (const bool own : {true, false}) {
    const at::Tensor some = vector({1, 2}), none = vector({1, 0});
    const GaussianDivergence result =
        diagonal_divergence(vector({0, 0}), own ? none : some, own ? some : none);
    EXPECT_TRUE(std::isinf(result.nats()));
    EXPECT_EQ(result.reason, "1 of 2 values have no noise");
  }
}

TEST(GaussianDivergence, SingularCovariancesAreInfiniteFromTheFailedPivotOn) {
  const at::Tensor whole = random_covariance(6, 9);
  const at::Tensor root = torch::randn({6, 3}, at::kDouble);
  const at::Tensor singular = root.mm(root.t());  // rank 3
  const at::Tensor difference = at::ones({6}, at::kDouble);
  for (const bool own : {true, false}) {
    const auto results =
        nested_divergences(difference, own ? singular : whole, own ? whole : singular, 1);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(results[i].finite(), i < 3) << i;
    EXPECT_TRUE(std::isinf(results[3].nats()));
    EXPECT_NE(results[3].reason.find("pivot 4 of 6"), std::string::npos) << results[3].reason;
    EXPECT_NE(results[3].reason.find(own ? "the model" : "the reference"), std::string::npos);
  }
  const at::Tensor zero = at::zeros({6, 6}, at::kDouble);
  EXPECT_FALSE(dense_divergence(difference, zero, zero).finite());
}

TEST(GaussianDivergence, ATolerantPivotTestCallsWeakDirectionsSingular) {
  const at::Tensor weak = at::tensor({1.0, 1.0, 1.0, 1.0 + 1e-6}, at::kDouble).view({2, 2});
  const at::Tensor zero = at::zeros({2}, at::kDouble);
  EXPECT_TRUE(dense_divergence(zero, weak, weak).finite());
  EXPECT_FALSE(dense_divergence(zero, weak, weak, {.entry_tolerance = 1e-5}).finite());
}

TEST(GaussianDivergence, WhatCannotBeACovarianceIsRefused) {
  const at::Tensor two = vector({1, 2});
  EXPECT_NE(refusal([&] { diagonal_divergence(two, vector({1}), two); }).find("must be 2 values"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              diagonal_divergence(two, two, vector({1, -1}));
            }).find(">= 0"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              diagonal_divergence(vector({1, std::nan("")}), two, two);
            }).find("not finite"),
            std::string::npos);
  const at::Tensor skewed = at::tensor({1.0, 0.5, 0.0, 1.0}, at::kDouble).view({2, 2});
  EXPECT_NE(refusal([&] { dense_divergence(two, skewed, at::diag(two)); }).find("covariance"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              nested_divergences(two, at::diag(two), at::diag(two), 3);
            }).find("must divide"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
