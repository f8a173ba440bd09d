// Error against remaining information as the noise grows (the paper's Fig. 3).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "pumice/evaluation/information_bounds.h"
#include "pumice/forgetting/scrub.h"

namespace pumice {

// Variance and first-order covariances of answers are proportional to α: one side (a scrubbed
// model, or the retrained one) is measured at α = 1 and serves all scales.
struct TradeoffSide {
  WeightDistribution unit;               // at α = 1
  SeparateAnswers cohort, retain, test;  // covariances at α = 1
};

struct TradeoffOptions {
  std::vector<double> scales;  // α > 0
  NoiseOptions noise = {};     // shape, ε and cap; the seed of the draws
  std::int64_t queries = 50;   // of each set, at most
  Answers answers = Answers::logits;
  double floor = 0;  // τ of the black-box bounds
};

// Cost: the Fisher information, and the query blocks of 3·queries examples.
TradeoffSide tradeoff_side(const ForgettingTask& task, const Dataset& test, const Weights& mean,
                           const TradeoffOptions& options);

// One entry for each scale, as docs/records.md says: errors of one draw, white-box bound, black-box
// bounds as means over the queries of each set. Cost: a forward pass over all data for each scale.
nlohmann::json noise_tradeoff(const ForgettingTask& task, const Dataset& test,
                              const TradeoffSide& subject, const TradeoffSide& reference,
                              const TradeoffOptions& options);

}  // namespace pumice
