#include "pumice/forgetting/solve_goals.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pumice {
namespace {

constexpr double largest_right_side_error = 0.01;
constexpr double largest_distance = 0.01;
// What is needed may be nothing: a cohort that the linear model fits exactly leaves no residual.
constexpr double smallest_relative_error = 1e-12;

// The relative error at which the bound is `size`.
double relative_to(double size, const SolveError& so_far) {
  return so_far.bound > 0 ? so_far.relative * size / so_far.bound : so_far.relative;
}

}  // namespace

double needed_for_right_side(double remaining_residual, const SolveError& so_far) {
  return relative_to(largest_right_side_error * remaining_residual, so_far);
}

double needed_for_shift(double length, double ridge, const SolveError& so_far) {
  return relative_to(largest_distance * std::sqrt(ridge) * length, so_far);
}

RoundsResult solve_in_rounds(
    const LinearOperator& matrix, const at::Tensor& b, ConjugateGradientsOptions options,
    const NeededError& needed,
    const std::function<void(const ConjugateGradientsResult&)>& after_round) {
  RoundsResult rounds;
  SolveError reached;
  for (std::int64_t round = 0; round < most_rounds; ++round) {
    ConjugateGradientsResult result = conjugate_gradients(matrix, b, options);
    after_round(result);
    const bool converged = result.summary.converged();
    const ConjugateGradientsColumn& column = result.summary.columns.front();
    const SolveError error{.bound = *column.error_bound, .relative = *column.relative_error_bound};
    // What the caller asked for is the first round's. A later one may end where rounding begins, or
    // creep there until its iterations are used up: which of the two it is depends on the
    // processor.
    if (round == 0 && !converged) {
      rounds.converged = false;
      rounds.explanation = result.summary.brief();
      rounds.out_of_iterations =
          result.summary.termination == ConjugateGradientsTermination::max_iterations;
    }
    // A round that ended where rounding begins may have moved away.
    if (round == 0 || error.bound < reached.bound) {
      reached = error;
      rounds.nearest = std::move(result);
    }
    if (!needed) return rounds;
    const double goal = std::max(smallest_relative_error, needed(rounds.nearest.solution, reached));
    rounds.near_enough = reached.relative <= goal;
    if (rounds.near_enough || !converged) return rounds;
    options.error_tolerance = goal;
    options.initial_guess = rounds.nearest.solution;
  }
  return rounds;
}

}  // namespace pumice
