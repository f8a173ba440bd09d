#include "pumice/linalg/linear_operator.h"

#include "pumice/core/error.h"

namespace pumice {

void check_operand(const at::Tensor& x, std::int64_t size, std::optional<at::ScalarType> type) {
  if ((x.dim() != 1 && x.dim() != 2) || x.size(0) != size) {
    fail("operand: shape ", x.sizes(), ", must be [", size, "] or [", size, ", k]");
  }
  if (type && x.scalar_type() != *type) {
    fail("operand: type ", x.scalar_type(), ", must be ", *type, " as the operator's");
  }
}

at::Tensor to_dense(const LinearOperator& matrix) {
  return matrix.apply(at::eye(matrix.size(), matrix.diagonal().options()));
}

}  // namespace pumice
