#include <gtest/gtest.h>

#include "linalg/known_matrices.h"
#include "pumice/linalg/spectrum.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::laplacian;
using testing::laplacian_eigenvalues_descending;
using testing::matrix_with_spectrum;
using testing::refusal;

TEST(Spectrum, EigenvaluesOfTheLaplacianAreThoseOfTheFormula) {
  const at::Tensor eigenvalues = eigenvalues_descending(laplacian(50));
  EXPECT_EQ(eigenvalues.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::allclose(eigenvalues, laplacian_eigenvalues_descending(50), 0, 1e-13));
}

TEST(Spectrum, EigenvaluesComeBackFromARotatedMatrixLargestFirst) {
  const at::Tensor expected = at::tensor({7.0, 3.0, 3.0, 0.5, 0.0}, at::kDouble);
  EXPECT_TRUE(
      at::allclose(eigenvalues_descending(matrix_with_spectrum(expected)), expected, 0, 1e-13));
}

TEST(Spectrum, SinglePrecisionMatricesGiveDoublePrecisionEigenvalues) {
  const at::Tensor eigenvalues = eigenvalues_descending(laplacian(8).to(at::kFloat));
  EXPECT_TRUE(at::allclose(eigenvalues, laplacian_eigenvalues_descending(8), 0, 1e-13));
}

TEST(Spectrum, NegativeEigenvaluesAreNotClamped) {
  const at::Tensor expected = at::tensor({2.0, -1.0}, at::kDouble);
  EXPECT_TRUE(
      at::allclose(eigenvalues_descending(matrix_with_spectrum(expected)), expected, 0, 1e-14));
  EXPECT_EQ(refusal([] {
              eigenvalues_descending(at::zeros({2, 3}, at::kDouble));
            }),
            "matrix: shape [2, 3], must be n×n with n >= 1");
}

TEST(EffectiveDimension, IsTheSumOfItsFormula) {
  const at::Tensor eigenvalues = at::tensor({3.0, 1.0, 0.25, 0.0}, at::kDouble);
  EXPECT_DOUBLE_EQ(effective_dimension(eigenvalues, 1), 0.75 + 0.5 + 0.2);
  EXPECT_DOUBLE_EQ(effective_dimension(eigenvalues.flip(0), 1), 0.75 + 0.5 + 0.2);
  EXPECT_NEAR(effective_dimension(eigenvalues, 1e-12), 3, 1e-10);
  EXPECT_NEAR(effective_dimension(eigenvalues, 1e12), 0, 1e-10);
}

TEST(EffectiveDimension, EqualsTheTraceOfTheSmoother) {
  const at::Tensor matrix = laplacian(30);
  const at::Tensor smoother = at::linalg_solve(matrix + 0.3 * at::eye(30, at::kDouble), matrix);
  EXPECT_NEAR(effective_dimension(eigenvalues_descending(matrix), 0.3),
              smoother.trace().item<double>(), 1e-11);
}

TEST(EffectiveDimension, NegativeEigenvaluesOfRoundingSizeEnterAsTheyAre) {
  const at::Tensor eigenvalues = at::tensor({1.0, -1e-9}, at::kDouble);
  EXPECT_DOUBLE_EQ(effective_dimension(eigenvalues, 1e-6), 1 / (1 + 1e-6) - 1e-9 / (1e-6 - 1e-9));
}

TEST(EffectiveDimension, RefusesWhatWouldBeASumOfRoundingErrors) {
  const at::Tensor eigenvalues = at::tensor({1.0, -1e-3}, at::kDouble);
  EXPECT_EQ(refusal([&] { effective_dimension(eigenvalues, 0.01); }),
            "eigenvalues: the smallest is -0.001, must be >= -ridge/100 = -0.0001 for an effective "
            "dimension");
  EXPECT_EQ(refusal([&] { effective_dimension(eigenvalues, 0); }),
            "ridge: 0, must be finite and > 0");
  EXPECT_EQ(refusal([&] { effective_dimension(eigenvalues.unsqueeze(0), 1); }),
            "eigenvalues: shape [1, 2], must be [n] with n >= 1");
  EXPECT_EQ(refusal([&] { effective_dimension(eigenvalues / 0, 1); }),
            "eigenvalues: not all finite, must be");
}

}  // namespace
}  // namespace pumice
