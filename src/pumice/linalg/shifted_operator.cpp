#include "pumice/linalg/shifted_operator.h"

#include <cmath>

#include "pumice/core/error.h"

namespace pumice {

ShiftedOperator::ShiftedOperator(const LinearOperator& matrix, double shift)
    : matrix_(matrix), shift_(shift) {
  if (!std::isfinite(shift) || shift < 0) fail("shift: ", shift, ", must be finite and >= 0");
}

std::int64_t ShiftedOperator::size() const {
  return matrix_.size();
}

at::Tensor ShiftedOperator::apply(const at::Tensor& x) const {
  return at::add(matrix_.apply(x), x, shift_);
}

at::Tensor ShiftedOperator::diagonal() const {
  return matrix_.diagonal() + shift_;
}

}  // namespace pumice
