// Conjugate gradients: A x = b with a symmetric positive definite operator, for several b at once.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pumice/linalg/linear_operator.h"

namespace pumice {

// Where a solve is after an iteration.
struct ConjugateGradientsProgress {
  std::int64_t iteration = 0;       // from 1
  std::int64_t active_columns = 0;  // not yet at their end
  double relative_residual = 0;     // the largest of this iteration, by recursion: an estimate
  std::int64_t operator_applications = 0;
  double seconds = 0;
  // A copy of all columns as they are, in the shape of b: a checkpoint, fit for `initial_guess`.
  std::function<at::Tensor()> solution;
};

// A column has converged when it meets every tolerance that is set; at least one has to be. With
// r = b − A x and norms per column:
//   relative_tolerance   |r| <= relative_tolerance · |b|
//   error_tolerance      |r|/√μ <= error_tolerance · |x|_A,   |x|_A² = xᵀA x = xᵀ(b − r)
// The second is about the error itself: with A ⪰ μI, |x − A⁻¹b|_A² = rᵀA⁻¹r <= |r|²/μ. From a zero
// start |x|_A <= |A⁻¹b|_A, so the error is then at most error_tolerance relative to the solution.
// To stop by the error alone, set relative_tolerance = std::nullopt.
struct ConjugateGradientsOptions {
  std::optional<double> relative_tolerance = 1e-8;
  std::optional<double> error_tolerance = std::nullopt;      // needs smallest_eigenvalue
  std::optional<double> smallest_eigenvalue = std::nullopt;  // μ > 0 with A ⪰ μI: the ridge, say
  std::int64_t max_iterations = 1000;
  // Each so many iterations, b − A x is computed (one more application) and compared with the
  // recursion r ← r − αAp, from which rounding drives it away.
  std::int64_t residual_recompute_every = 50;
  const LinearOperator* preconditioner = nullptr;  // M ≈ A⁻¹, symmetric positive definite
  std::optional<at::Tensor> initial_guess = std::nullopt;  // the shape of b; otherwise zero
  // Called after every iteration; false stops.
  std::function<bool(const ConjugateGradientsProgress&)> on_iteration = nullptr;
  // Where several processes run the same solve: replaces dot products and norms (float64) by those
  // of one of them. Other processors or numbers of threads round differently, and one process might
  // stop an iteration before the others.
  std::function<at::Tensor(at::Tensor)> agreed = nullptr;
};

// Throws Error with option, value and rule, or with what is wrong with b.
void check(const ConjugateGradientsOptions& options, const LinearOperator& matrix,
           const at::Tensor& b);

enum class ConjugateGradientsTermination {
  converged,
  max_iterations,
  // The accuracy of the numbers is used up: b − A x no longer follows the recursion, and starting
  // anew from it three times did not halve it. Happens when κ·ε is about the tolerance.
  stagnated,
  stopped,  // by on_iteration
  // pᵀAp or rᵀMr was not positive or not finite: A or M is not positive definite, or overflowed.
  breakdown,
};
const char* to_text(ConjugateGradientsTermination termination);  // "converged", "not converged: …"

struct ConjugateGradientsColumn {
  ConjugateGradientsTermination termination = ConjugateGradientsTermination::converged;
  std::int64_t iterations = 0;
  // |b − A x| / |b| of the x that is returned, from an application of A and not from the recursion.
  // What A's own arithmetic rounds is in it. 0 for b = 0.
  double relative_residual = 0;
  std::optional<double> error_bound = std::nullopt;           // |r|/√μ, if μ was given
  std::optional<double> relative_error_bound = std::nullopt;  // |r|/√μ / |x|_A, likewise
  std::string explanation = {};                               // of a breakdown
};

struct ConjugateGradientsSummary {
  ConjugateGradientsTermination termination =
      ConjugateGradientsTermination::converged;  // the worst
  std::int64_t iterations = 0;                   // the most
  std::int64_t operator_applications = 0;  // to one vector each, recomputed residuals included
  double seconds = 0;
  std::vector<ConjugateGradientsColumn> columns;

  bool converged() const { return termination == ConjugateGradientsTermination::converged; }
  double largest_relative_residual() const;  // NaN if one is
  std::string brief() const;                 // one sentence
  std::string full() const;                  // and a line for each column that did not converge
};

struct ConjugateGradientsResult {
  at::Tensor solution;  // the shape and type of b
  ConjugateGradientsSummary summary;
};

// Solves A X = B for B of shape n or n×k, float32 or float64. Vectors are kept in B's type, scalars
// (dot products) in float64. Each column has its own scalars, so that it takes the same steps as if
// it were alone, up to rounding; a column at its end is frozen, and A and M are applied to the
// others only. A column b = 0 has the solution 0, whatever the initial guess.
//
// Step:  α = rᵀz / pᵀAp;  x ← x + αp;  r ← r − αAp;  z = M r;
//        β = rᵀz (new) / rᵀz (old);  p ← z + βp
//
// "Converged" is said of a recomputed residual only. Where the recomputed one differs from the
// recursion by more than half of itself, it takes its place and the column starts anew (β = 0): the
// old direction is no longer conjugate. Below that the recursion goes on, since it converges
// faster: replacing it every 10 iterations, as Ceres does, took 1.6 times the iterations on a
// 100×100 matrix with κ = 1e6.
//
// Cost: an iteration is one application of A and M and about 10·n·k multiplications.
// Memory: about 7·n·k numbers besides B and the result.
// Throws Error for shapes, types and options that do not fit, and for a B that is not finite or
// whose squared norm leaves the range of float64. That A and M are symmetric and positive definite
// is the caller's promise; a breakdown tells of some violations, not of all.
ConjugateGradientsResult conjugate_gradients(const LinearOperator& matrix, const at::Tensor& b,
                                             const ConjugateGradientsOptions& options = {});

}  // namespace pumice
