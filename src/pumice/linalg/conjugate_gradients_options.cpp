#include <cmath>

#include "pumice/core/error.h"
#include "pumice/linalg/conjugate_gradients.h"

namespace pumice {
namespace {

void check_positive(const char* option, const std::optional<double>& value) {
  if (value && !(std::isfinite(*value) && *value > 0))
    fail(option, ": ", *value, ", must be finite and > 0");
}

void check_vectors(const char* name, const at::Tensor& vectors) {
  if (!at::isfinite(vectors).all().item<bool>()) {
    fail(name, ": holds a number that is not finite, must not");
  }
}

}  // namespace

void check(const ConjugateGradientsOptions& options, const LinearOperator& matrix,
           const at::Tensor& b) {
  const std::int64_t size = matrix.size();
  if ((b.dim() != 1 && b.dim() != 2) || b.size(0) != size || b.numel() == 0) {
    fail("right-hand side: shape ", b.sizes(), ", must be [", size, "] or [", size,
         ", k] with k >= 1");
  }
  if (b.scalar_type() != at::kDouble && b.scalar_type() != at::kFloat) {
    fail("right-hand side: type ", b.scalar_type(), ", must be float64 or float32");
  }
  check_vectors("right-hand side", b);
  check_positive("relative_tolerance", options.relative_tolerance);
  check_positive("error_tolerance", options.error_tolerance);
  check_positive("smallest_eigenvalue", options.smallest_eigenvalue);
  if (!options.relative_tolerance && !options.error_tolerance) {
    fail("relative_tolerance, error_tolerance: neither is set, one must be");
  }
  if (options.error_tolerance && !options.smallest_eigenvalue) {
    fail("error_tolerance: ", *options.error_tolerance, ", needs smallest_eigenvalue");
  }
  if (options.max_iterations < 1) {
    fail("max_iterations: ", options.max_iterations, ", must be >= 1");
  }
  if (options.residual_recompute_every < 1) {
    fail("residual_recompute_every: ", options.residual_recompute_every, ", must be >= 1");
  }
  if (options.preconditioner && options.preconditioner->size() != size) {
    fail("preconditioner: size ", options.preconditioner->size(), ", must be ", size,
         " as the operator's");
  }
  if (!options.initial_guess) return;
  const at::Tensor& guess = *options.initial_guess;
  if (guess.sizes() != b.sizes() || guess.scalar_type() != b.scalar_type()) {
    fail("initial_guess: shape ", guess.sizes(), " and type ", guess.scalar_type(), ", must be ",
         b.sizes(), " and ", b.scalar_type(), " as the right-hand side's");
  }
  check_vectors("initial_guess", guess);
}

}  // namespace pumice
