// How far to go along the direction of the consistent scrub, without a retrained model to look at.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "pumice/forgetting/forgetting_summary.h"
#include "pumice/forgetting/forgetting_task.h"

namespace pumice {

// Linear models undershoot: of the known displacement u = w − w0, and of the one that is looked for
// (docs/results/methods.md has the measurements behind both rules).
//
// Without unseen examples:  s = min(2, a⁴), a = max(1, |u|²/(wlin(D)·u)): 1 for a model that is
// linear in its weights, and 2 for every network measured so far.
//
// With unseen examples (a validation set): after forgetting, the cohort must be to the model what
// unseen examples are. How hard they are is told by a probe, a linear classifier on the last
// layer's inputs at w0 (which never saw the cohort), fitted to the retained examples (5,000 of
// them, if there are more). Margin =
// logit of the label minus the largest other one.
//   1. Regression over the unseen examples: margin of the model ≈ a + b · margin of the probe.
//   2. Target: a + b · mean margin of the probe on the cohort.
//   3. s_m in [1, 8] at which the cohort's mean margin under w + s_m δ is the target.
//   4. The mean over few examples is noisy: s = s_m^(n/(n+5)) · 2^(5/(n+5)) for a cohort of n.
// Cost: a forward pass over those, the cohort and the unseen ones; about 15 over the cohort.
struct ScaleChoice {
  double scale = 1;
  std::string rule;
  std::optional<MarginSummary> margins = {};
};
ScaleChoice choose_scale(const ForgettingTask& task, const at::Tensor& direction,
                         const at::Tensor& displacement, const at::Tensor& wlin_all);

// The rule without unseen examples. It looks at no cohort, so that one scale serves many requests.
ScaleChoice scale_without_examples(const at::Tensor& displacement, const at::Tensor& wlin_all);

// The minimum of mean cross-entropy + decay/2·|W − centre|² over W (c×(d+1), the last column is the
// bias): a linear classifier on features (n×d). Newton's method with step halving, in float64.
// Cost: (c·d)³/3 multiplications an iteration, about ten of them.
at::Tensor fit_linear_classifier(const at::Tensor& features, const at::Tensor& labels,
                                 const at::Tensor& centre, double decay);

}  // namespace pumice
