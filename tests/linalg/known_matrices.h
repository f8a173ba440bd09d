// Matrices whose answers are known in closed form, float64.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>

namespace pumice::testing {

// Q diag(eigenvalues) Qᵀ with a random orthogonal Q, exactly symmetric.
inline at::Tensor matrix_with_spectrum(const at::Tensor& eigenvalues, std::uint64_t seed = 1) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const std::int64_t n = eigenvalues.size(0);
  const at::Tensor q = std::get<0>(at::linalg_qr(at::randn({n, n}, generator, at::kDouble)));
  const at::Tensor matrix = (q * eigenvalues.to(at::kDouble)).matmul(q.t());
  return (matrix + matrix.t()) / 2;
}

// κ = 10^decades, eigenvalues 1 … 10^−decades evenly in the logarithm.
inline at::Tensor ill_conditioned(std::int64_t n, double decades, std::uint64_t seed = 1) {
  return matrix_with_spectrum(at::logspace(0, -decades, n, 10, at::kDouble), seed);
}

// 2 on the diagonal, −1 beside it: eigenvalues 2 − 2 cos(kπ/(n+1)), k = 1 … n; determinant n + 1.
inline at::Tensor laplacian(std::int64_t n) {
  return 2 * at::eye(n, at::kDouble) - at::diag(at::ones({n - 1}, at::kDouble), 1) -
         at::diag(at::ones({n - 1}, at::kDouble), -1);
}

inline at::Tensor laplacian_eigenvalues_descending(std::int64_t n) {
  return 2 - 2 * at::cos(at::arange(n, 0, -1, at::kDouble) * (M_PI / static_cast<double>(n + 1)));
}

// 1/(i + j + 1): as ill-conditioned as they come; the determinant for n = 5 is 1/266,716,800,000.
inline at::Tensor hilbert(std::int64_t n) {
  const at::Tensor index = at::arange(n, at::kDouble);
  return 1 / (index.unsqueeze(1) + index + 1);
}

inline at::Tensor random_columns(std::int64_t n, std::int64_t k, std::uint64_t seed = 2) {
  return at::randn({n, k}, at::detail::createCPUGenerator(seed), at::kDouble);
}
inline at::Tensor random_vector(std::int64_t n, std::uint64_t seed = 2) {
  return random_columns(n, 1, seed).squeeze(1);
}

// |b − A x| / |b|, computed in float64 whatever the types.
inline double relative_residual(const at::Tensor& matrix, const at::Tensor& x,
                                const at::Tensor& b) {
  const at::Tensor right = b.to(at::kDouble);
  const at::Tensor residual = right - matrix.to(at::kDouble).matmul(x.to(at::kDouble));
  return (residual.norm() / right.norm()).item<double>();
}

}  // namespace pumice::testing
