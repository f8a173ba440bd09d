// How far one Gaussian is from another, in nats:
//   KL(N(m, S) ‖ N(m0, S0)) = ½ [ Δᵀ S0⁻¹ Δ + tr(S S0⁻¹) − log|S S0⁻¹| − k ],   Δ = m − m0.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pumice {

// Both parts are >= 0. Without noise there is no bound, even where the two means agree: the
// divergence of point masses is either 0 or infinite, and which would hang on the last bit of a
// weight. Such a divergence is infinite, in both parts, and says why.
struct GaussianDivergence {
  double quadratic = 0;  // ½ Δᵀ S0⁻¹ Δ: how far the means are apart
  double spread = 0;  // ½ [tr(S S0⁻¹) − log|S S0⁻¹| − k]: how much the covariances differ
  std::int64_t dimension = 0;  // k
  std::string reason = {};     // why it is infinite; empty if it is finite

  double nats() const { return quadratic + spread; }
  bool finite() const { return reason.empty(); }
};

GaussianDivergence infinite_divergence(std::int64_t dimension, std::string reason);

// Diagonal covariances; all three have k values and are summed in float64. With
// t = variance/reference_variance − 1 the spread is ½ Σ (t − log1p(t)), exact also for t near 0.
// A variance of zero on either side: infinite. Throws Error for shapes that differ, and for a
// variance that is negative or not finite. Cost: O(k).
GaussianDivergence diagonal_divergence(const at::Tensor& difference, const at::Tensor& variance,
                                       const at::Tensor& reference_variance);

struct DenseDivergenceOptions {
  // How wrong the entries S_ij may be, relative to √(S_ii S_jj). Such errors move the pivot L_ii²
  // by about tolerance·L_ii² Σ_j (L⁻¹)_ij² S_jj; where that is all of it, the pivot is rounding and
  // S counts as singular. Default: k·ε of float64. Entries that were computed in float32 need more.
  std::optional<double> entry_tolerance = {};
};

double rounding_of(at::ScalarType type);  // ε of float64 or float32

// For k×k covariances whose entries were computed with rounding ε: independent errors of that size
// act like √k·ε, and the factorization itself adds k·ε of float64.
DenseDivergenceOptions tolerance_of_entries(double rounding, std::int64_t size);

// Full covariances, k×k float64, through their Cholesky factors: L0 = chol(S0), z = L0⁻¹Δ and the
// lower triangular W = L0⁻¹ chol(S) give quadratic ½|z|², trace |W|²_F, log-determinant 2 Σ log
// W_ii. A covariance that is not positive definite to working precision: infinite, with the first
// pivot that failed; nothing is added to help it. Throws Error for shapes that do not fit, values
// that are not finite and matrices that are not symmetric. Cost: about k³ multiplications.
GaussianDivergence dense_divergence(const at::Tensor& difference, const at::Tensor& covariance,
                                    const at::Tensor& reference_covariance,
                                    const DenseDivergenceOptions& options = {});

// The same for the first `block` coordinates, the first 2·block, … all k (a multiple of `block`):
// k/block results at the cost of one, since the factors of a leading block are leading blocks of
// the factors. They never decrease; from the first pivot that fails on they are infinite.
std::vector<GaussianDivergence> nested_divergences(const at::Tensor& difference,
                                                   const at::Tensor& covariance,
                                                   const at::Tensor& reference_covariance,
                                                   std::int64_t block,
                                                   const DenseDivergenceOptions& options = {});

}  // namespace pumice
