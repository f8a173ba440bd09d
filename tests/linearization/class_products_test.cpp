#include "pumice/linearization/class_products.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace pumice {
namespace {

// Lengths around the width of a vector register, and every blocking of seeds.
TEST(ClassProducts, EqualEinsumForEveryLengthAndNumberOfSeeds) {
  torch::manual_seed(1);
  for (const std::int64_t seeds : {1, 2, 3, 5, 7, 10}) {
    for (const std::int64_t length : {1, 3, 4, 7, 8, 9, 16, 25, 31}) {
      const at::Tensor left = torch::randn({3, seeds, length}, at::kDouble);
      const at::Tensor right = torch::randn({3, seeds, length}, at::kDouble);
      const at::Tensor expected = at::einsum("tso,tro->sr", {left, right}) + 1;
      at::Tensor out = torch::ones({seeds, seeds}, at::kDouble);
      add_class_products(seeds, seeds, 3, length, left.data_ptr<double>(), seeds * length, length,
                         right.data_ptr<double>(), seeds * length, length, out.data_ptr<double>(),
                         seeds);
      EXPECT_TRUE(torch::allclose(out, expected, 1e-12)) << seeds << " seeds, length " << length;
      at::Tensor narrow = torch::ones({seeds, seeds});
      const at::Tensor left_narrow = left.to(at::kFloat), right_narrow = right.to(at::kFloat);
      add_class_products(seeds, seeds, 3, length, left_narrow.data_ptr<float>(), seeds * length,
                         length, right_narrow.data_ptr<float>(), seeds * length, length,
                         narrow.data_ptr<float>(), seeds);
      EXPECT_TRUE(torch::allclose(narrow, expected.to(at::kFloat), 1e-4, 1e-4)) << length;
    }
  }
}

TEST(ClassProducts, TransformedPositionsEqualTheMatrixProduct) {
  torch::manual_seed(2);
  for (const std::int64_t outputs : {1, 4, 5, 6, 13}) {
    for (const std::int64_t columns : {1, 7, 8, 16, 17, 40}) {
      const at::Tensor weights = torch::randn({9, outputs}, at::kDouble);
      const at::Tensor values = torch::randn({9, columns}, at::kDouble);
      at::Tensor out = torch::full({outputs, columns}, 7, at::kDouble);
      transform_positions(outputs, columns, 9, weights.data_ptr<double>(), outputs,
                          values.data_ptr<double>(), columns, out.data_ptr<double>(), columns);
      EXPECT_TRUE(torch::allclose(out, weights.t().mm(values), 1e-12)) << outputs << "×" << columns;
    }
  }
}

}  // namespace
}  // namespace pumice
