// What a method did, with the numbers that were used: for people and for the record.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pumice {

// The trapezium trick (docs/forgetting.md): k = cos∠(δ, e), e = u − wlin(Dr).
struct TrapeziumSummary {
  double cosine = 0;  // k
  double angle = 0;   // arccos k, radians
  double error_norm = 0;
  double scale = 0;  // |δ'|/|δ|
};

// Where a scale came from that was chosen with unseen examples (scale_rule.h): mean margins.
struct MarginSummary {
  std::int64_t unseen_examples = 0;
  double unseen = 0;         // of the unseen examples
  double slope = 0;          // of the regression on the probe's margin
  double target = 0;         // for the cohort
  double before = 0;         // of the cohort, before the shift
  double matched_scale = 0;  // at which the cohort has the target's margin, in [1, 8]
};

// Against models that were retrained without the cohort, if some were given.
struct ReferenceSummary {
  std::int64_t count = 0;
  double cosine = 0;                 // of the shift to the mean true shift, mean w(Dr) − w(D)
  double norm_ratio = 0;             // |shift| / |mean true shift|
  double distance = 0;               // |scrubbed − mean w(Dr)|
  std::optional<double> floor = {};  // mean distance between two of them
};

struct NoiseSummary {
  double scale = 0;  // α
  std::string shape;
  double epsilon = 0;
  std::optional<double> cap = {};
  double norm = 0;            // √ Σ variance: the length of the noise one must expect
  bool reproducible = false;  // drawn from a given seed: not private
};

struct ForgettingSummary {
  std::string method;
  bool converged = true;
  std::string explanation = {};    // of a failure
  bool out_of_iterations = false;  // matrix-free: why it failed; its iterates are worth keeping

  double shift_norm = 0;                      // |h(w) − w|
  double displacement_norm = 0;               // |w − centre|
  std::optional<double> direction_norm = {};  // |δ| before scaling
  std::optional<double> ridge = {};           // the λ that was used
  std::optional<double> scale = {};           // along δ
  std::string scale_rule = {};                // where the scale came from
  std::optional<std::string> curvature = {}, linearized_at = {}, solver = {};
  std::optional<double> relative_residual = {}, condition_estimate = {};
  std::optional<std::int64_t> iterations = {};
  // Matrix-free: of the relative error in the norm of A, from |r|/√μ; examples of the
  // preconditioner.
  std::optional<double> error_bound = {};
  std::optional<bool> near_enough = {};  // for a shift that is exact to .9999 (solve_goals.h)
  std::optional<std::int64_t> preconditioner = {};
  std::string solver_reason = {};               // why this one, if it was chosen
  std::optional<double> forecast_seconds = {};  // if one was made
  std::optional<TrapeziumSummary> trapezium = {};
  std::optional<MarginSummary> margins = {};
  std::optional<std::int64_t> epochs = {};        // of methods that train
  std::vector<std::string> slow_parameters = {};  // that the engine has no rule for
  std::optional<ReferenceSummary> reference = {};
  std::optional<NoiseSummary> noise = {};

  double seconds = 0;
  // FLOPs as multiples of one training epoch on D, as if nothing had been computed before for
  // another method; a kernel by its cheapest plan.
  double epoch_equivalents = 0;
  bool shared_kernel = false;  // a kernel computed for an earlier method was used

  std::string brief() const;  // one line
  std::string full() const;   // a line for each number, with what it means
};
nlohmann::json to_json(const ForgettingSummary& summary);

}  // namespace pumice
