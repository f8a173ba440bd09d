#include <chrono>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"
#include "pumice/forgetting/forgetting_method.h"

namespace pumice {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

const std::vector<MethodEntry>& forgetting_methods() {
  static const std::vector<MethodEntry> table{
      {"consistent",
       "linear model whose weight decay pulls to the start, as far as unseen examples tell "
       "(default)",
       true, false, false, &make_consistent, LinearShape{}},
      {"ntk", "the paper's linear model, with its trapezium trick", true, false, false, &make_ntk,
       LinearShape{.displaced = false}},
      {"newton", "one Newton step on the retained data (Gauss-Newton curvature)", true, false,
       false, &make_newton, LinearShape{.curvature = Curvature::softmax, .difference = false}},
      {"fisher", "noise alone, shaped by the Fisher information", false, false, true,
       &make_unchanged},
      {"finetune", "ten more epochs on the retained data", false, false, false, &make_finetune},
      {"retrain", "train again from the start without the cohort: the reference", false, true,
       false, &make_retrain},
      {"original", "the model as it is", false, false, false, &make_unchanged}};
  return table;
}

const MethodEntry& method_named(const std::string& name) {
  std::vector<std::string> known;
  for (const MethodEntry& entry : forgetting_methods()) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  fail("method: '", name, "' is unknown", suggestion(name, known));
}

SummaryClock::SummaryClock(const ForgettingTask& task, ForgettingSummary& summary)
    : task_(task), summary_(summary), begin_(now()) {}

void SummaryClock::finish(const at::Tensor& scrubbed, double epoch_equivalents) {
  const at::Tensor before = task_.weights.flat.to(at::kDouble);
  if (scrubbed.defined()) {
    summary_.shift_norm = (scrubbed.to(at::kDouble) - before).norm().item<double>();
  }
  summary_.displacement_norm = (before - task_.centre.to(at::kDouble)).norm().item<double>();
  summary_.epoch_equivalents = epoch_equivalents;
  summary_.seconds = now() - begin_;
}

void take(const SolveReport& report, ForgettingSummary& summary) {
  summary.converged = report.converged;
  summary.explanation = report.explanation;
  summary.out_of_iterations = report.out_of_iterations;
  summary.relative_residual = report.relative_residual;
  summary.condition_estimate = report.condition_estimate;
  summary.iterations = report.iterations;
  summary.error_bound = report.error_bound;
  summary.near_enough = report.near_enough;
  summary.preconditioner = report.preconditioner;
}

ReferenceSummary compare(const Weights& before, const Weights& after,
                         const std::vector<Weights>& retrained) {
  ReferenceSummary summary;
  summary.count = static_cast<std::int64_t>(retrained.size());
  at::Tensor mean = at::zeros({before.flat.numel()}, at::kDouble);
  for (const Weights& one : retrained) {
    if (!(*one.layout == *before.layout)) {
      fail("reference: ", one.flat.numel(),
           " weights, must have the names and shapes of the model");
    }
    mean.add_(one.flat.to(at::kDouble), 1.0 / static_cast<double>(retrained.size()));
  }
  const at::Tensor truth = mean - before.flat.to(at::kDouble);
  const at::Tensor shift = after.flat.to(at::kDouble) - before.flat.to(at::kDouble);
  const double true_norm = truth.norm().item<double>(), norm = shift.norm().item<double>();
  if (norm > 0 && true_norm > 0) {
    summary.cosine = shift.dot(truth).item<double>() / (norm * true_norm);
    summary.norm_ratio = norm / true_norm;
  }
  summary.distance = (after.flat.to(at::kDouble) - mean).norm().item<double>();
  if (retrained.size() >= 2) {
    double sum = 0;
    std::int64_t pairs = 0;
    for (std::size_t i = 0; i < retrained.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j, ++pairs) {
        sum += (retrained[i].flat - retrained[j].flat).to(at::kDouble).norm().item<double>();
      }
    }
    summary.floor = sum / static_cast<double>(pairs);
  }
  return summary;
}

}  // namespace pumice
