// What every LinearOperator owes its users, checked on one whose matrix is known.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/linalg/linear_operator.h"

namespace pumice::testing {

// |a − b| / |b| in float64; |a| if b is zero.
inline double relative_distance(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  const at::Tensor difference = a.to(at::kDouble) - b.to(at::kDouble);
  const auto size = b.to(at::kDouble).norm().item<double>();
  return difference.norm().item<double>() / (size > 0 ? size : 1.0);
}

inline bool refuses(const LinearOperator& matrix, const at::Tensor& x) {
  try {
    matrix.apply(x);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// One sentence for each promise that is broken: EXPECT_EQ(broken_promises(…), none).
// `expected` is the n×n matrix, from another source than the operator; `tolerance` is relative to
// the norm of what is compared.
inline std::vector<std::string> broken_promises(const LinearOperator& matrix,
                                                const at::Tensor& expected, double tolerance) {
  std::vector<std::string> broken;
  const auto promise = [&](bool kept, const std::string& sentence) {
    if (!kept) broken.push_back(sentence);
  };
  const auto close = [&](const at::Tensor& a, const at::Tensor& b) {
    return relative_distance(a, b) <= tolerance;
  };
  const std::int64_t n = expected.size(0);
  promise(matrix.size() == n, text("size() is ", matrix.size(), ", the matrix has ", n));
  const at::Tensor diagonal = matrix.diagonal();
  promise(close(diagonal, expected.diagonal()), "diagonal() is the diagonal of the matrix");
  promise(close(to_dense(matrix), expected), "the identity is turned into the matrix");

  const at::Generator generator = at::detail::createCPUGenerator(7);
  const at::Tensor x = at::randn({n, 3}, generator, diagonal.options());
  const at::Tensor y = at::randn({n, 3}, generator, diagonal.options());
  const at::Tensor dense = expected.to(at::kDouble);
  const at::Tensor before = x.clone();
  const at::Tensor product = matrix.apply(x);
  const at::Tensor kept_product = product.clone();
  promise(at::equal(x, before), "apply() leaves its operand untouched");
  promise(product.scalar_type() == x.scalar_type(), "apply() keeps the type");
  promise(close(product, dense.matmul(x.to(at::kDouble))), "columns are multiplied by the matrix");
  promise(at::equal(matrix.apply(x), product), "apply() gives the same twice");
  promise(close(matrix.apply(x.t().contiguous().t()), product),
          "columns that are not contiguous give the same");
  for (std::int64_t column = 0; column < x.size(1); ++column) {
    promise(close(matrix.apply(x.select(1, column)), product.select(1, column)),
            text("column ", column, " alone gives the same as among others"));
  }
  promise(at::equal(product, kept_product),
          "a result does not change when apply() is called again");

  const at::Tensor other = matrix.apply(y).to(at::kDouble);
  const at::Tensor own = product.to(at::kDouble);
  const double left = (own * y).sum().item<double>(), right = (other * x).sum().item<double>();
  const double scale = own.norm().item<double>() * y.norm().item<double>();
  promise(std::abs(left - right) <= tolerance * scale,
          text("<Ax,y> = ", left, ", <x,Ay> = ", right));
  const auto energy = (own * x).sum().item<double>();
  promise(energy >= -tolerance * scale, text("xᵀAx = ", energy, ", must not be negative"));

  promise(refuses(matrix, at::zeros({n + 1}, diagonal.options())), "a longer vector is refused");
  promise(refuses(matrix, at::zeros({n, 2, 2}, diagonal.options())),
          "a third dimension is refused");
  return broken;
}

}  // namespace pumice::testing
