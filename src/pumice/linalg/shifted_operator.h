// A + μI: the ridge on an operator.
#pragma once

#include "pumice/linalg/linear_operator.h"

namespace pumice {

// (A + μI) x = A x + μ x, with A ⪰ 0 and therefore A + μI ⪰ μI: the `smallest_eigenvalue` of
// conjugate gradients. Costs one application of A and n·k additions.
class ShiftedOperator final : public LinearOperator {
 public:
  // Refers to `matrix`, which has to live longer. Throws Error unless shift is finite and >= 0.
  ShiftedOperator(const LinearOperator& matrix, double shift);
  ShiftedOperator(const LinearOperator&& matrix, double shift) = delete;

  std::int64_t size() const override;
  at::Tensor apply(const at::Tensor& x) const override;
  at::Tensor diagonal() const override;

 private:
  const LinearOperator& matrix_;
  double shift_;
};

}  // namespace pumice
