// The point of linearisation: what is computed there once, and what every request solves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pumice/forgetting/dual_solve.h"
#include "pumice/forgetting/forgetting_task.h"
#include "pumice/index/index_content.h"

namespace pumice {

// How the kernel was computed and solved.
struct IndexReport {
  std::string kernel;  // one line
  double relative_residual = 0;
  double seconds = 0;
};

// The rule of a scale that the user has fixed; another one is found anew at every point.
constexpr const char* given_scale = "given";

// Fills a content that has its terms: kernel, residuals, wlin(D) and scale at the task's weights,
// digests of its training set. Throws Error if memory does not suffice or the solve fails. Cost:
// the kernel, a forward and a tangent pass, one factorization, one backward pass.
IndexReport linearize(const ForgettingTask& task, SharedProblems& shared, IndexContent& content);

// (Θ + N·λ·I) β = r − J u over all rows; the displacement of the linear model is −Jᵀβ.
DualSolution solve_index(const IndexContent& content);

// Throws Error, naming both numbers, if a request would take more than `memory` bytes (default:
// half of what is free).
void check_index_memory(std::int64_t examples, std::int64_t classes,
                        const std::optional<std::int64_t>& memory);

}  // namespace pumice
