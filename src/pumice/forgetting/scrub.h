// One method from beginning to end: the shift, the noise, one draw.
#pragma once

#include <string>
#include <vector>

#include "pumice/forgetting/forgetting_method.h"
#include "pumice/forgetting/noise.h"
#include "pumice/model/weight_distribution.h"

namespace pumice {

struct ScrubOptions {
  std::string method = "consistent";  // a name of forgetting_methods()
  MethodOptions options = {};
  NoiseOptions noise = {};
};

struct Scrubbed {
  WeightDistribution distribution;  // h(w) and its noise
  Weights sample;                   // what is released
  ForgettingSummary summary;

  // False if the method came to no result: distribution and sample are undefined then. A result
  // that did not converge is there, and told by the summary.
  bool succeeded() const { return sample.flat.defined(); }
};

// `references` (may be empty) are retrained models that the shift is compared with. Progress goes
// to task.linear.progress. Cost: the method's, and the Fisher information if there is noise.
Scrubbed scrub(const ForgettingTask& task, SharedProblems& shared, const ScrubOptions& options,
               const std::vector<Weights>& references = {});

// The second half of it, after a shift that is there already.
Scrubbed release(const ForgettingTask& task, const ShiftResult& shifted,
                 const ScrubOptions& options, const std::vector<Weights>& references = {});

// Diagonal Fisher information at `mean` over the retained examples: p values, float64. Cost: one
// forward pass and, for each class, one backward pass with its rows of the Jacobian.
at::Tensor retained_fisher(const ForgettingTask& task, const Weights& mean);

// N(mean, α·shape(F)), F at `mean` over the retained examples; deterministic for α = 0.
WeightDistribution with_noise(const ForgettingTask& task, const NoiseOptions& options,
                              const Weights& mean);

}  // namespace pumice
