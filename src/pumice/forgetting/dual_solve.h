// The one equation that every linearised shift comes from, solved in kernel space.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "pumice/linalg/cholesky.h"

namespace pumice {

// For n examples with c classes: Θ = J Jᵀ ((n·c)×(n·c)) and H = R Rᵀ block by block.
struct DualSystem {
  at::Tensor theta;  // float64
  at::Tensor root;   // n×c×k; undefined: H = I
};

struct DualSolution {
  at::Tensor coefficients;       // β, n×c; undefined if the factorization failed
  double relative_residual = 0;  // |(HΘ + μI)β − b| / |b|, computed from β
  double condition_estimate = 0;
  CholeskySummary factorization;

  bool succeeded() const { return factorization.succeeded; }
};

// β with (HΘ + μI) β = b, b of shape n×c, μ > 0. HΘ is not symmetric; with K = RᵀΘR
//   β = (b − R (K + μI)⁻¹ RᵀΘ b) / μ,   and for H = I simply (Θ + μI)⁻¹ b.
// Cost: (n·k)³/3 multiplications.
DualSolution solve_dual(const DualSystem& system, double ridge, const at::Tensor& right_side);

// The rows that belong to these examples, in this order.
at::Tensor chosen(const at::Tensor& by_example, const std::vector<std::int64_t>& examples);
// The rows and columns of Θ that belong to these examples, in this order.
at::Tensor kernel_of(const at::Tensor& theta, const std::vector<std::int64_t>& examples,
                     std::int64_t classes);

}  // namespace pumice
