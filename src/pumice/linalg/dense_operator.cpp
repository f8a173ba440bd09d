#include "pumice/linalg/dense_operator.h"

#include <utility>

#include "pumice/linalg/symmetric_matrix.h"

namespace pumice {

DenseOperator::DenseOperator(at::Tensor matrix) : matrix_(std::move(matrix)) {
  check_symmetric("matrix", matrix_);
}

std::int64_t DenseOperator::size() const {
  return matrix_.size(0);
}

at::Tensor DenseOperator::apply(const at::Tensor& x) const {
  check_operand(x, size(), matrix_.scalar_type());
  return at::matmul(matrix_, x);
}

at::Tensor DenseOperator::diagonal() const {
  return matrix_.diagonal().clone();
}

}  // namespace pumice
