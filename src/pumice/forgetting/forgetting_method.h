// A way to forget: one class in one file, listed in method_table.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pumice/forgetting/forgetting_summary.h"
#include "pumice/forgetting/forgetting_task.h"

namespace pumice {

struct ShiftResult {
  Weights weights;  // h(w); undefined flat vector if the method did not succeed
  ForgettingSummary summary;
};

// Contract (tests/contracts/forgetting_method_contract.h): the task's weights, model and data stay
// as they are; names and shapes are kept; the order of the cohort does not matter; a pure shift
// does nothing for an empty cohort. Numerics that did not succeed are told by
// summary.converged, never by an exception.
class ForgettingMethod {
 public:
  virtual ~ForgettingMethod() = default;
  virtual ShiftResult shift(const ForgettingTask& task, SharedProblems& shared) const = 0;
};

enum class LinearizeAt { weights, start };

// The options of all methods; each takes what its entry in the table names.
struct MethodOptions {
  // ntk, consistent, newton
  std::optional<Curvature> curvature = {};  // default: identity, for newton softmax
  std::optional<double> ridge = {};         // the λ of the solve; default: the weight decay
  std::optional<double> scale = {};         // along δ; default: what the method's rule says
  LinearizeAt linearize_at = LinearizeAt::weights;  // ntk
  bool trapezium = true;                            // ntk
  std::optional<Solver> solver = {};                // default: automatic
  // finetune
  std::int64_t finetune_epochs = 10;
  double finetune_rate = 0.01;
  // retrain
  bool replace = false;  // fill the cohort's places with repeats of retained examples
};

// What a linearised method asks of its LinearProblem.
struct LinearShape {
  Curvature curvature = Curvature::identity;  // unless the options name another
  bool displaced = true;                      // see LinearModel
  bool difference = true;  // δ, with its two solves; else the step to wlin(Dr) alone
};

// One line of the table that help, protocols and documentation read.
struct MethodEntry {
  std::string name;
  std::string description;  // one line
  bool needs_ridge = false;
  bool needs_start = false;
  bool needs_noise = false;  // without noise it does nothing
  std::unique_ptr<ForgettingMethod> (*make)(const MethodOptions& options);
  std::optional<LinearShape> linear = {};
};
const std::vector<MethodEntry>& forgetting_methods();
const MethodEntry& method_named(const std::string& name);  // throws Error with a suggestion

// One maker for each file of this room.
std::unique_ptr<ForgettingMethod> make_consistent(const MethodOptions& options);
std::unique_ptr<ForgettingMethod> make_ntk(const MethodOptions& options);
std::unique_ptr<ForgettingMethod> make_newton(const MethodOptions& options);
std::unique_ptr<ForgettingMethod> make_finetune(const MethodOptions& options);
std::unique_ptr<ForgettingMethod> make_retrain(const MethodOptions& options);
std::unique_ptr<ForgettingMethod> make_unchanged(const MethodOptions& options);  // original, fisher

// Fills what is the same for all methods: norms, seconds, work.
class SummaryClock {
 public:
  SummaryClock(const ForgettingTask& task, ForgettingSummary& summary);
  // `flops` spent since the construction, `epoch` those of one training epoch.
  void finish(const at::Tensor& scrubbed, double epoch_equivalents);

 private:
  const ForgettingTask& task_;
  ForgettingSummary& summary_;
  double begin_;
};

// How a solve went, into the summary.
void take(const SolveReport& report, ForgettingSummary& summary);

// The scrubbed weights' place against retrained models: cosine and length of the shift.
ReferenceSummary compare(const Weights& before, const Weights& after,
                         const std::vector<Weights>& retrained);

}  // namespace pumice
