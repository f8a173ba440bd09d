// A symmetric positive semi-definite matrix that is never stored: all a solver needs to know of it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

namespace pumice {

// A is n×n with A = Aᵀ and xᵀAx >= 0. Every operator passes the suite in
// tests/contracts/linear_operator_contract.h. Applying it twice gives the same bits, or conjugate
// gradients chase a moving target.
class LinearOperator {
 public:
  virtual ~LinearOperator() = default;

  virtual std::int64_t size() const = 0;  // n

  // A x for x of shape n, or A X for the columns of X, n×k. The result is a new tensor of the same
  // shape and type; x stays untouched and need not be contiguous. Throws Error for another shape.
  virtual at::Tensor apply(const at::Tensor& x) const = 0;

  // a_11 … a_nn, of the type that apply() takes. May cost as much as n applications.
  virtual at::Tensor diagonal() const = 0;
};

// What apply() owes its caller: throws Error unless x is n or n×k, and of the given type if any.
void check_operand(const at::Tensor& x, std::int64_t size,
                   std::optional<at::ScalarType> type = std::nullopt);

// The n×n matrix: A applied to the identity, of the diagonal's type. Cost: n applications and n²
// numbers; for tests and small problems. Rounding in apply() may leave it slightly asymmetric.
at::Tensor to_dense(const LinearOperator& matrix);

}  // namespace pumice
