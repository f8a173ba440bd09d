// A = L Lᵀ: solving with a matrix that fits into memory, exactly or not at all.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>

namespace pumice {

struct CholeskyOptions {
  // A failure is explained with the smallest eigenvalue if n is at most this (it costs 4/3·n³).
  std::int64_t eigenvalues_up_to = 2000;
};

// Nothing is added to a matrix that is not positive definite; the summary says what would have to
// be.
struct CholeskySummary {
  bool succeeded = false;
  std::int64_t size = 0;         // n
  double smallest_diagonal = 0;  // of A
  double largest_diagonal = 0;
  double seconds = 0;

  // Why it failed. The pivot of minor m is the square of what would become L_mm,
  //   d = a_mm − aᵀ A_{m−1}⁻¹ a,   a = (a_1m … a_{m−1,m}),
  // recomputed from the leading block; its sign is certain up to about n·ε·largest_diagonal.
  std::optional<std::int64_t> failed_minor = std::nullopt;  // order m of the first bad one, from 1
  std::optional<double> failed_pivot = std::nullopt;        // d
  // No ridge up to this helps: v = (−A_{m−1}⁻¹ a, 1) has vᵀAv = d, so λ_min <= d/|v|².
  std::optional<double> necessary_ridge = std::nullopt;  // max(0, −d/|v|²)
  std::optional<double> smallest_eigenvalue = std::nullopt;
  // max(0, −λ_min) + 10·n·ε·λ_max, the second term for rounding: what to try. Known with λ_min.
  std::optional<double> sufficient_ridge = std::nullopt;

  std::string brief() const;  // one sentence
  std::string full() const;   // several lines
};

// Float64 throughout, with LAPACK's blocked algorithm. Memory: n² numbers besides A.
class Cholesky {
 public:
  // Reads the lower triangle of `matrix`, n×n. A matrix that is not positive definite gives a
  // failed summary, and then nothing else here may be called (assert). Throws Error unless `matrix`
  // is float64 and passes check_symmetric(). Cost: n³/3 multiplications; a failure at minor m costs
  // m³/3 more, and the eigenvalues.
  static Cholesky factorize(const at::Tensor& matrix, const CholeskyOptions& options = {});

  const CholeskySummary& summary() const { return summary_; }
  const at::Tensor& factor() const;  // L, n×n, lower triangular with positive diagonal

  // A⁻¹ b for b of shape n or n×k, same shape. Throws Error unless float64 and of that shape.
  // Cost: 2n²k. The relative error is about κ·n·ε.
  at::Tensor solve(const at::Tensor& b) const;

  double log_determinant() const;  // log det A = 2 Σ log L_ii

  // (max L_ii / min L_ii)², a lower bound of the condition κ = λ_max/λ_min, since L_11² … L_nn² lie
  // in [λ_min, λ_max]. Often too small by one or two orders of magnitude; O(n).
  double condition_estimate() const;

 private:
  Cholesky() = default;

  at::Tensor factor_;
  CholeskySummary summary_;
};

}  // namespace pumice
