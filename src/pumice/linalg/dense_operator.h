// A matrix in memory as an operator.
#pragma once

#include "pumice/linalg/linear_operator.h"

namespace pumice {

// Memory: the n×n tensor it is given, shared, not copied. An application costs n²k multiplications.
class DenseOperator final : public LinearOperator {
 public:
  // Throws Error unless `matrix` passes check_symmetric(). That it has no negative eigenvalue is
  // the caller's promise: to check it costs a factorization.
  explicit DenseOperator(at::Tensor matrix);

  std::int64_t size() const override;
  at::Tensor apply(const at::Tensor& x) const override;
  at::Tensor diagonal() const override;

 private:
  at::Tensor matrix_;
};

}  // namespace pumice
