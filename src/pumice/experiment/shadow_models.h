// Shadow models: what an attacker who knows the whole procedure would train to learn how forgetting
// looks from outside (evaluation/shadow_margins.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pumice/evaluation/shadow_margins.h"
#include "pumice/forgetting/scrub.h"

namespace pumice {

// Trained as w(D) was, from the same start, in other orders.
struct ShadowModels {
  std::vector<Weights> with_cohort;     // on D: yet to be scrubbed
  std::vector<Weights> without_cohort;  // on Dr
};

// The recipe of shadow 0, 1, … of one kind: that of w(D) with an order_seed of its own (streams
// "shadow/in/<index>" and "shadow/out/<index>"), never that of w(D) or of a reference.
TrainingOptions shadow_recipe(const TrainingOptions& recipe, bool with_cohort, std::int64_t index);

struct ShadowOptions {
  std::int64_t count = 8;  // of each kind; the attack fits a spread to them: at least 2
  bool replace = false;    // in the trainings without the cohort
  // Told what is being computed and which share of it is done; may throw to give up.
  std::function<void(const std::string& what, double share)> progress = {};
};

// Throws Error if the task has no start, if the recipe trains batch-norm statistics, or for a count
// below 2. Cost: 2·count trainings.
ShadowModels train_shadows(const ForgettingTask& task, const ShadowOptions& options);

// Margins of all shadows on cohort, retain (rows in the order of the split) and test, after those
// that knew the cohort were made to forget it in the given way. With a noise seed, each shadow has
// one of its own derived from it. A shadow whose scrub came to no result throws Error. Progress
// goes to task.linear.progress. Cost: the method's, once for each shadow that knew the cohort; no
// kernel is shared, since each has weights of its own.
ShadowMargins shadow_margins(const ForgettingTask& task, const Dataset& test,
                             const ShadowModels& shadows, const ScrubOptions& scrubbing);

}  // namespace pumice
