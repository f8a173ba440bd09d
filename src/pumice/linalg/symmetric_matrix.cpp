#include "pumice/linalg/symmetric_matrix.h"

#include <algorithm>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr std::int64_t rows_at_once = 1024;

void check_finite(const std::string& name, const at::Tensor& rows, std::int64_t first_row) {
  const at::Tensor bad = at::isfinite(rows).logical_not();
  if (!bad.any().item<bool>()) return;
  const at::Tensor place = bad.nonzero()[0];
  const auto row = place[0].item<std::int64_t>(), column = place[1].item<std::int64_t>();
  fail(name, ": element (", first_row + row, ", ", column, ") is ",
       rows[row][column].item<double>(), ", must be finite");
}

}  // namespace

double symmetry_tolerance(at::ScalarType type) {
  return type == at::kDouble ? 1e-10 : 1e-5;
}

void check_symmetric(const std::string& name, const at::Tensor& matrix) {
  if (matrix.dim() != 2 || matrix.size(0) != matrix.size(1) || matrix.size(0) == 0) {
    fail(name, ": shape ", matrix.sizes(), ", must be n×n with n >= 1");
  }
  if (matrix.scalar_type() != at::kDouble && matrix.scalar_type() != at::kFloat) {
    fail(name, ": type ", matrix.scalar_type(), ", must be float64 or float32");
  }
  const std::int64_t size = matrix.size(0);
  double largest = 0, worst = 0;
  std::int64_t worst_row = 0, worst_column = 0;
  for (std::int64_t first = 0; first < size; first += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, size - first);
    const at::Tensor rows = matrix.narrow(0, first, count);
    check_finite(name, rows, first);
    largest = std::max(largest, rows.abs().max().item<double>());
    const at::Tensor difference = (rows - matrix.narrow(1, first, count).t()).abs_();
    const auto place = difference.argmax().item<std::int64_t>();
    const auto value = difference.reshape({-1})[place].item<double>();
    // A NaN here is the mirror image of one in a later row, which check_finite will name.
    if (value > worst) {
      worst = value;
      worst_row = first + place / size;
      worst_column = place % size;
    }
  }
  const double tolerance = symmetry_tolerance(matrix.scalar_type());
  if (worst > tolerance * largest) {
    fail(name, ": element (", worst_row, ", ", worst_column,
         ") = ", matrix[worst_row][worst_column].item<double>(),
         ", its mirror image = ", matrix[worst_column][worst_row].item<double>(),
         ", must be equal within ", tolerance, " of the largest element, ", largest);
  }
}

}  // namespace pumice
