// How near the two matrix-free solves of a shift have to come (docs/scale.md, "Stopping"), for the
// solves themselves and for the estimate of their iterations.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

#include "pumice/linalg/conjugate_gradients.h"

namespace pumice {

// Of a solution x of A x = b.
struct SolveError {
  double bound = 0;     // of |x − A⁻¹b|_A
  double relative = 0;  // bound / |x|_A
};

// The relative error at which the bound is small beside the cohort's remaining residual ρ, into
// which an error e of wlin(D) enters as H_f J_f e = R_f η, η = R_fᵀ J_f e, |η| <= |e|_A: at most
// 0.01 of ρ's length beside such an η (length_on_curvature in loss.h).
double needed_for_right_side(double remaining_residual, const SolveError& so_far);
// The same for the shift: |e| <= |e|_A/√μ is at most 0.01·|δ|, so that its cosine with the exact
// one is above .9999.
double needed_for_shift(double length, double ridge, const SolveError& so_far);

// How often a solve goes on to a goal that became known on its way.
constexpr std::int64_t most_rounds = 4;

// The relative error that x needs beyond the options' tolerances.
using NeededError = std::function<double(const at::Tensor& x, const SolveError& so_far)>;

struct RoundsResult {
  ConjugateGradientsResult nearest;  // of the round with the smallest bound of the error
  bool converged = true;             // by the options' own tolerances: the first round
  bool out_of_iterations = false;    // if not, whether more would have helped
  std::string explanation = {};      // if not
  bool near_enough = true;           // by `needed`, too; float32 may not carry as many digits
};

// Conjugate gradients for one right-hand side b that go on from where they were until the error is
// at most `needed(x, error)`, in at most `most_rounds` rounds, each of up to max_iterations.
// `after_round` is told of each. Needs options.error_tolerance.
RoundsResult solve_in_rounds(
    const LinearOperator& matrix, const at::Tensor& b, ConjugateGradientsOptions options,
    const NeededError& needed,
    const std::function<void(const ConjugateGradientsResult&)>& after_round);

}  // namespace pumice
