#include "pumice/linalg/column_dots.h"

#include <gtest/gtest.h>

#include "linalg/known_matrices.h"

namespace pumice {
namespace {

using testing::random_columns;

TEST(ColumnDots, EachColumnHasItsOwn) {
  const at::Tensor a = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, at::kDouble).reshape({3, 2});
  const at::Tensor b = at::tensor({1.0, 0.0, 10.0, 1.0, 100.0, -1.0}, at::kDouble).reshape({3, 2});
  EXPECT_EQ(column_dots(a, b), (std::vector<double>{531, -2}));
  EXPECT_EQ(column_norms(4 * at::eye(2, at::kDouble)), (std::vector<double>{4, 4}));
}

TEST(ColumnDots, LongVectorsAreSummedOverAllBlocksOfRows) {
  const at::Tensor a = random_columns(200'001, 2, 3), b = random_columns(200'001, 2, 4);
  const std::vector<double> dots = column_dots(a, b);
  for (std::int64_t column = 0; column < 2; ++column) {
    EXPECT_NEAR(dots[column], a.select(1, column).dot(b.select(1, column)).item<double>(), 1e-9);
  }
}

TEST(ColumnDots, SinglePrecisionVectorsLoseNothing) {
  // In float32 neither the squares of 1 + 2⁻¹² nor their cancelling sum could be kept.
  const at::Tensor a = at::tensor({1 + std::pow(2.0, -12), 1.0}, at::kFloat).unsqueeze(1);
  const at::Tensor b = at::tensor({1 + std::pow(2.0, -12), -1.0}, at::kFloat).unsqueeze(1);
  EXPECT_EQ(column_dots(a, b)[0], std::pow(2.0, -11) + std::pow(2.0, -24));
}

}  // namespace
}  // namespace pumice
