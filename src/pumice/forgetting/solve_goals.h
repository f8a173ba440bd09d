// How near the two matrix-free solves of a shift have to come (docs/scale.md, "Stopping").
#pragma once

#include "pumice/linalg/conjugate_gradients.h"

namespace pumice {

// Tolerances of the relative error in the norm of A.
constexpr double tolerance_without_goal = 1e-3;   // of a solve that stands for itself
constexpr double tolerance_of_first_look = 0.03;  // at which a goal is asked for the first time

// wlin(D) enters the second solve's right-hand side through ρ, what the linear model leaves of the
// cohort's residual: an error e as H_f J_f e, |H_f J_f e| <= |e|_A. It may be 0.0004 of |ρ|.
double needed_for_right_side(double remaining_residual, const ConjugateGradientsError& so_far);

// |e| <= |e|_A/√μ may be 0.01 of |δ|: the cosine with the exact shift is then above .9999. What is
// near in the norm of A may still be far where A is small.
double needed_for_shift(double length, double ridge, const ConjugateGradientsError& so_far);

}  // namespace pumice
