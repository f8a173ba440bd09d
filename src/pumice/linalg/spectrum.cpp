#include "pumice/linalg/spectrum.h"

#include <cmath>

#include "pumice/core/error.h"
#include "pumice/linalg/symmetric_matrix.h"

namespace pumice {

at::Tensor eigenvalues_descending(const at::Tensor& symmetric) {
  check_symmetric("matrix", symmetric);
  return at::linalg_eigvalsh(symmetric.to(at::kDouble)).flip(0);
}

double effective_dimension(const at::Tensor& eigenvalues, double ridge) {
  if (!std::isfinite(ridge) || ridge <= 0) fail("ridge: ", ridge, ", must be finite and > 0");
  if (eigenvalues.dim() != 1 || eigenvalues.size(0) == 0) {
    fail("eigenvalues: shape ", eigenvalues.sizes(), ", must be [n] with n >= 1");
  }
  const at::Tensor values = eigenvalues.to(at::kDouble);
  if (!at::isfinite(values).all().item<bool>()) fail("eigenvalues: not all finite, must be");
  const auto smallest = values.min().item<double>();
  if (smallest < -ridge / 100) {
    fail("eigenvalues: the smallest is ", smallest, ", must be >= -ridge/100 = ", -ridge / 100,
         " for an effective dimension");
  }
  return (values / (values + ridge)).sum().item<double>();
}

}  // namespace pumice
