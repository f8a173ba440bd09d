// Models retrained without the cohort: what forgetting is measured against.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pumice/data/normalization.h"
#include "pumice/data/split.h"
#include "pumice/model/model.h"
#include "pumice/model/training.h"

namespace pumice {

// The recipe of reference 0, 1, …: that of w(D) itself for the first one (same head, same order
// where possible); the others meet the examples in another order (order_seed from the stream
// "reference/<index>"), so that their differences show what retraining leaves to chance.
TrainingOptions reference_recipe(const TrainingOptions& recipe, std::int64_t index);

struct ReferenceOptions {
  TrainingOptions recipe;  // of w(D)
  std::int64_t count = 2;  // a verdict needs at least two
  bool replace = false;    // fill the cohort's places with repeats of retained examples
  // Told what is being computed and which share of it is done; may throw to give up.
  std::function<void(const std::string& what, double share)> progress = {};
};

// w(Dr), `count` times, from `start` (w0, the head of w(D)). The model's buffers are used as they
// are: throws Error for a recipe that trains batch-norm statistics, and for a count below 1. Cost:
// count trainings.
std::vector<Weights> retrained_references(Model& model, const Weights& start, const Dataset& train,
                                          const Split& split, const Normalization& normalization,
                                          const ReferenceOptions& options);

}  // namespace pumice
