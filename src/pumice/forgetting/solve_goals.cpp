#include "pumice/forgetting/solve_goals.h"

#include <cmath>

namespace pumice {
namespace {

constexpr double largest_right_side_error = 0.002;
constexpr double largest_distance = 0.005;
constexpr int most_rounds = 4;

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

void solve_in_rounds(const LinearOperator& matrix, const at::Tensor& b,
                     ConjugateGradientsOptions options, const NeededError& needed,
                     const std::function<void(const ConjugateGradientsResult&)>& after_round) {
  for (int round = 0; round < most_rounds; ++round) {
    const ConjugateGradientsResult result = conjugate_gradients(matrix, b, options);
    after_round(result);
    if (!result.summary.converged() || !needed) return;
    const ConjugateGradientsColumn& column = result.summary.columns.front();
    const SolveError reached{.bound = *column.error_bound,
                             .relative = *column.relative_error_bound};
    const double goal = needed(result.solution, reached);
    if (!(reached.relative > goal)) return;
    options.error_tolerance = goal;
    options.initial_guess = result.solution;
  }
}

}  // namespace pumice
