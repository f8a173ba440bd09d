// How fast a model learns the cohort again: what it still knows makes it faster.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/dataset.h"
#include "pumice/data/normalization.h"
#include "pumice/evaluation/readout.h"
#include "pumice/model/model.h"

namespace pumice {

// Stochastic gradient descent without momentum on the mean cross-entropy + λ/2 |w − start|².
struct RelearnOptions {
  double rate = 0.01;
  std::int64_t batch_size = 128;
  double weight_decay = 0;  // λ, pulling to where relearning starts
  std::int64_t max_epochs = 100;
  double tolerance = 1e-5;  // on the loss
  std::uint64_t seed = 1;   // streams "relearn/<epoch>"
  // Told after each epoch which share of max_epochs is done; may throw to give up.
  std::function<void(double share)> progress = {};
};

// The first epoch of fine-tuning on all of D after which the mean loss on the cohort is at or below
// `target`. A model that is there before any training counts as 1, the smallest value there is.
struct RelearnTime {
  std::optional<std::int64_t> epochs = {};  // from 1; none: not within the limit
  std::int64_t limit = 0;
  double target = 0;
  std::vector<double> losses = {};  // on the cohort: before, and after each epoch
  std::string explanation = {};     // if training failed before the limit

  std::string text() const;  // "64", "> 100", "failed"
};

// An epoch draws N examples of D with replacement. `target` is the original model's mean loss on
// the cohort plus the tolerance. `weights` are copied, neither they nor the model change.
// Throws Error for an empty cohort, options out of range, or weights that are not the model's.
// Cost: at most max_epochs training epochs on D.
RelearnTime relearn_time(const Model& model, const Weights& weights, const Weights& original,
                         const Dataset& train, const std::vector<std::int64_t>& cohort,
                         const Normalization& normalization, const RelearnOptions& options = {});

// A censored time has the limit as its value and an interval from there to infinity.
Readout relearn_readout(const RelearnTime& time);

}  // namespace pumice
