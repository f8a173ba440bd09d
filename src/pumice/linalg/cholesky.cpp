#include "pumice/linalg/cholesky.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <limits>
#include <tuple>

#include "pumice/core/error.h"
#include "pumice/linalg/linear_operator.h"
#include "pumice/linalg/symmetric_matrix.h"

namespace pumice {
namespace {

struct Factorization {
  at::Tensor factor;
  std::int64_t failed_minor = 0;  // 0: none
};

Factorization try_to_factorize(const at::Tensor& matrix) {
  auto [factor, info] = at::linalg_cholesky_ex(matrix);
  return {factor, info.item<std::int64_t>()};
}

// LAPACK's variants leave different things in the place of the failed pivot, so it is computed
// here.
void explain_pivot(const at::Tensor& matrix, std::int64_t minor, CholeskySummary& summary) {
  Factorization leading;
  while (minor > 1) {
    leading = try_to_factorize(matrix.narrow(0, 0, minor - 1).narrow(1, 0, minor - 1));
    if (leading.failed_minor == 0) break;
    minor = leading.failed_minor;  // blocks of another size round differently
  }
  double pivot = matrix[minor - 1][minor - 1].item<double>();
  double direction = 1;  // |v|²
  if (minor > 1) {
    const at::Tensor column = matrix.narrow(0, minor - 1, 1).narrow(1, 0, minor - 1).t();
    const at::Tensor half = at::linalg_solve_triangular(leading.factor, column, /*upper=*/false);
    const at::Tensor whole = at::linalg_solve_triangular(leading.factor.t(), half, /*upper=*/true);
    pivot -= half.square().sum().item<double>();
    direction += whole.square().sum().item<double>();
  }
  summary.failed_minor = minor;
  summary.failed_pivot = pivot;
  summary.necessary_ridge = std::max(0.0, -pivot / direction);
}

void explain_spectrum(const at::Tensor& matrix, CholeskySummary& summary) {
  const at::Tensor eigenvalues = at::linalg_eigvalsh(matrix);
  const auto smallest = eigenvalues[0].item<double>();
  const auto largest = eigenvalues[-1].item<double>();
  const double rounding = 10.0 * summary.size * std::numeric_limits<double>::epsilon() *
                          std::max(std::abs(smallest), std::abs(largest));
  summary.smallest_eigenvalue = smallest;
  summary.sufficient_ridge = std::max(0.0, -smallest) + rounding;
}

// To three digits, so that the number in a sentence is still sufficient.
double rounded_up(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::ceil(value / unit) * unit;
}

}  // namespace

Cholesky Cholesky::factorize(const at::Tensor& matrix, const CholeskyOptions& options) {
  check_symmetric("matrix", matrix);
  if (matrix.scalar_type() != at::kDouble) {
    fail("matrix: type ", matrix.scalar_type(), ", must be float64 for a Cholesky factorization");
  }
  const auto start = std::chrono::steady_clock::now();
  Cholesky result;
  CholeskySummary& summary = result.summary_;
  const at::Tensor diagonal = matrix.diagonal();
  summary.size = matrix.size(0);
  summary.smallest_diagonal = diagonal.min().item<double>();
  summary.largest_diagonal = diagonal.max().item<double>();
  const Factorization factorization = try_to_factorize(matrix);
  summary.succeeded = factorization.failed_minor == 0;
  if (summary.succeeded) {
    result.factor_ = factorization.factor;
  } else {
    explain_pivot(matrix, factorization.failed_minor, summary);
    if (summary.size <= options.eigenvalues_up_to) explain_spectrum(matrix, summary);
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

const at::Tensor& Cholesky::factor() const {
  assert(summary_.succeeded);
  return factor_;
}

at::Tensor Cholesky::solve(const at::Tensor& b) const {
  assert(summary_.succeeded);
  check_operand(b, summary_.size, at::kDouble);
  if (b.dim() == 2) return at::cholesky_solve(b, factor_);
  return at::cholesky_solve(b.unsqueeze(1), factor_).squeeze(1);
}

double Cholesky::log_determinant() const {
  assert(summary_.succeeded);
  return 2 * factor_.diagonal().log().sum().item<double>();
}

double Cholesky::condition_estimate() const {
  assert(summary_.succeeded);
  const at::Tensor diagonal = factor_.diagonal();
  const double ratio = diagonal.max().item<double>() / diagonal.min().item<double>();
  return ratio * ratio;
}

std::string CholeskySummary::brief() const {
  if (succeeded) {
    return text(std::setprecision(3), "factorized ", size, "×", size, " in ", seconds, " s");
  }
  const std::string pivot =
      text(std::setprecision(3), "not positive definite: pivot ", *failed_minor, " of ", size,
           " is ", *failed_pivot, ", the diagonal goes from ", smallest_diagonal, " to ",
           largest_diagonal, ", ");
  if (!smallest_eigenvalue) {
    return text(pivot, "it needs a ridge above ", *necessary_ridge);
  }
  return text(std::setprecision(3), pivot, "its smallest eigenvalue is ", *smallest_eigenvalue,
              ", it needs a ridge of ", rounded_up(*sufficient_ridge));
}

std::string CholeskySummary::full() const {
  std::string lines = text(
      "Cholesky factorization\n", std::setprecision(6), "  size                 ", size, "\n",
      "  succeeded            ", succeeded ? "yes" : "no", "\n", "  diagonal             ",
      smallest_diagonal, " … ", largest_diagonal, "\n", "  seconds              ", seconds, "\n");
  if (succeeded) return lines;
  lines += text("  failed minor         ", *failed_minor, "\n", "  its pivot            ",
                *failed_pivot, "\n", "  necessary ridge      ", *necessary_ridge, "\n");
  if (smallest_eigenvalue) {
    lines += text("  smallest eigenvalue  ", *smallest_eigenvalue, "\n", "  sufficient ridge     ",
                  *sufficient_ridge, "\n");
  }
  return lines;
}

}  // namespace pumice
