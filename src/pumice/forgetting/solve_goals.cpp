#include "pumice/forgetting/solve_goals.h"

#include <cmath>

namespace pumice {
namespace {

constexpr double largest_right_side_error = 0.0004;
constexpr double largest_distance = 0.01;

// The relative error at which the bound is `size`.
double relative_to(double size, const ConjugateGradientsError& so_far) {
  return so_far.bound > 0 ? so_far.relative * size / so_far.bound : so_far.relative;
}

}  // namespace

double needed_for_right_side(double remaining_residual, const ConjugateGradientsError& so_far) {
  return relative_to(largest_right_side_error * remaining_residual, so_far);
}

double needed_for_shift(double length, double ridge, const ConjugateGradientsError& so_far) {
  return relative_to(largest_distance * std::sqrt(ridge) * length, so_far);
}

}  // namespace pumice
