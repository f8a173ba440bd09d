// How many iterations conjugate gradients will take on all examples, from the kernel of a few.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

#include "pumice/forgetting/loss.h"

namespace pumice {

// What a solve is for (linear_problem.h): wlin(S), the step wlin(S) − u, or δ, whose right-hand
// side is the cohort's alone.
enum class SolvedFor { minimum, step, direction };

struct SampledSolve {
  SolvedFor what = SolvedFor::minimum;
  // Examples of the whole sample that stand for it; in a part of the sample, the same share. They
  // are the last of those in use. A minimum with a cohort is the first solve of a δ.
  std::int64_t cohort = 0;
};

// The linearised problem of m examples drawn from N, as far as their kernel tells it.
struct SampledProblem {
  at::Tensor theta;   // Θ, (m·c)×(m·c), float64
  at::Tensor logits;  // m×c: H follows from them
  Loss loss = Loss::cross_entropy;
  Curvature curvature = Curvature::identity;
  at::Tensor right_side;  // t, m×c: the solve's right-hand side is Jᵀ t (a step's: Jᵀ t + μ u)
  // J u (m×c) and |u|. A minimum is sought from −u, if that is nearer than zero; undefined: from
  // zero.
  at::Tensor displaced = {};
  double displacement_norm = 0;
  SampledSolve solve = {};
  double decay = 0;  // λ: the ridge of n examples is n·λ
  double error_tolerance = 1e-3;
  std::optional<double> relative_tolerance = {};
  std::int64_t max_iterations = 500;
};

// What conjugate gradients in weight space would take on the first n of the m examples, s of them
// making the Woodbury preconditioner (0: none; chosen as for a solve). With Θ = L Lᵀ the rows of L
// have the inner products of the rows of J, so L stands for J: A' = LᵀHL + nλI has the spectrum
// that the solve sees, and the same iterates up to a rotation; what u has outside of its rows is
// one more coordinate. Cost: a few (n·c)³.
std::int64_t iterations_on_sample(const SampledProblem& problem, std::int64_t examples,
                                  std::int64_t preconditioner);

struct IterationEstimate {
  double low = 0, expected = 0, high = 0;
};

// For N examples, s of them in the preconditioner: on the sample, the same share of it. A/N =
// JᵀHJ/N + λI tends to a limit, and with it the number of iterations: without a preconditioner from
// below; with one mostly from above, since a share of few examples tells less than the same share
// of many. One end is what m examples take. The other: the change from m/2 to m goes on at the same
// power of N, at most its square root; where it falls with the most curved in the preconditioner,
// at twice that power: their share tells more and more (measured, docs/scale.md). low and high: the
// smaller and the larger of the two; expected: half way between them, in logarithms. A share of
// less than one of m/2 examples tells nothing of a power.
IterationEstimate estimate_iterations(const SampledProblem& problem, std::int64_t examples,
                                      std::int64_t preconditioner);

}  // namespace pumice
