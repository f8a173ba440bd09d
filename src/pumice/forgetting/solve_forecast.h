// What a solve will cost, before any of it is done: time, memory, and which solver is faster.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "pumice/forgetting/iteration_estimate.h"
#include "pumice/forgetting/linear_problem.h"

namespace pumice {

// What is asked for: the step to wlin(retain) alone, or δ with its two solves.
struct SolveRequest {
  std::int64_t cohort = 0;  // examples
  bool difference = true;   // δ
  bool has_kernel = false;  // by then the kernel will be there, for an earlier request
};

// A forecast, not a promise. Seconds are from rates that are measured on this machine.
struct SolveForecast {
  Solver solver = Solver::dense;
  double seconds = 0, seconds_low = 0, seconds_high = 0;  // the range is that of the iterations
  std::int64_t bytes = 0;                                 // on top of the model and the data
  double flops = 0;
  bool fits = true;  // into the memory budget
  // Matrix-free: iterations of all solves together, examples of the preconditioner and of a batch.
  std::optional<IterationEstimate> iterations = {};
  std::int64_t preconditioner = 0, batch = 0;
};
nlohmann::json to_json(const SolveForecast& forecast);

struct SolverChoice {
  SolveForecast dense, matrix_free;
  Solver solver = Solver::dense;
  std::string reason;  // one sentence

  const SolveForecast& chosen() const { return solver == Solver::dense ? dense : matrix_free; }
};

// Seconds of the work of one forward pass for one example: a Gauss-Newton product over one batch is
// timed, twice.
double pass_seconds(const LinearProblem& problem);

// Both forecasts, and the faster of what fits. Measures the machine for about a second and computes
// the kernel of a few examples (which the preconditioner uses afterwards). With several processes:
// what the first one says. `model.solver`: automatic, or the one that was asked for, which is then
// chosen whatever it costs.
//   dense: the kernel by its plan (0 if it is there already), a factorization of (n·k)³/3
//     multiplications for each solve, one backward pass for each and for their difference.
//   matrix-free: iterations · (product over n + application of the preconditioner), right-hand
//     sides. A product is timed on one batch.
SolverChoice choose_solver(const LinearProblem& problem, const LinearModel& model,
                           const SolveRequest& request);

}  // namespace pumice
