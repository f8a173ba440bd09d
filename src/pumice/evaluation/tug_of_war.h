// Tug of war: does a model get as many right as the retrained one, on every set at once?
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/evaluation/readout.h"

namespace pumice {

// Which examples of one set are answered rightly: bool.
struct SetAnswers {
  std::string set;       // "cohort", "retain", "test"
  at::Tensor model;      // N
  at::Tensor retrained;  // N, or K×N for K retrained models: their mean accuracy is the target
};

struct SetPull {
  std::string set;
  double accuracy = 0, retrained_accuracy = 0;
  Interval difference;  // of the two
};

struct TugOfWar {
  double value = 0;  // Π_sets (1 − |accuracy − retrained accuracy|), in [0, 1]
  Interval interval;
  std::vector<SetPull> sets;
};

// The product alone, from (accuracy, retrained accuracy) of each set. Throws Error unless all are
// in [0, 1] and there is at least one.
double tug_of_war(const std::vector<std::pair<double, double>>& accuracies);

// With an interval over examples, the models being given. For each set, d_n = right_n − mean_k
// retrained right_kn of the N examples; the mean of d with half an example at each of +1 and −1 and
// one at 0 added (Agresti and Min: holds its level, and is not empty where all answers agree),
//   m = Σd / (N + 2),   m ± z √( ((Σd² + 1)/(N + 2) − m²) / (N + 2) ),   cut to [−1, 1],
// z for (1 − confidence) divided by the number of sets, so that all hold at once; then the smallest
// and the largest product within them. A bootstrap of the product would not do: |·| has its kink
// just where a good method is, and resamples then lie below the value.
// Throws Error without sets, for a set without examples, for shapes that differ, for answers that
// are not bool. The order of examples, of retrained models and of sets does not matter. Cost: K·N.
TugOfWar tug_of_war(const std::vector<SetAnswers>& answers, double confidence = 0.95);

Readout tug_of_war_readout(const TugOfWar& result);

}  // namespace pumice
