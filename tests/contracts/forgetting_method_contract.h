// What every forgetting method owes its users.
#pragma once

#include <string>
#include <vector>

#include "pumice/forgetting/forgetting_method.h"

namespace pumice::testing {

// One sentence for each promise that is broken: EXPECT_EQ(broken_promises(…), none). `reordered`
// asks the same of a cohort that was listed in another order.
inline std::vector<std::string> broken_promises(const ForgettingMethod& method,
                                                const ForgettingTask& task,
                                                const ForgettingTask& reordered) {
  std::vector<std::string> broken;
  const auto promise = [&](bool kept, const std::string& sentence) {
    if (!kept) broken.push_back(sentence);
  };
  const std::string weights_before = digest(task.model, task.weights);
  const std::string data_before = digest(task.train);
  const std::string centre_before = digest(Weights{task.weights.layout, task.centre});
  SharedProblems shared(task);
  const ShiftResult result = method.shift(task, shared);
  promise(digest(task.model, task.weights) == weights_before, "leaves model and weights untouched");
  promise(digest(task.train) == data_before, "leaves the data untouched");
  promise(digest(Weights{task.weights.layout, task.centre}) == centre_before,
          "leaves the start untouched");
  promise(result.summary.converged, "converges on a small problem");
  promise(result.weights.flat.defined(), "returns weights");
  if (!result.weights.flat.defined()) return broken;
  promise(*result.weights.layout == *task.weights.layout, "keeps names and shapes");
  promise(result.weights.flat.scalar_type() == task.weights.flat.scalar_type(), "keeps the type");
  promise(result.weights.flat.isfinite().all().item<bool>(), "returns finite weights");
  promise(!result.weights.flat.is_same(task.weights.flat), "returns weights of its own");
  const double moved = (result.weights.flat - task.weights.flat).norm().item<double>();
  promise(std::abs(moved - result.summary.shift_norm) <= 1e-4 * moved + 1e-12,
          "tells how far it moved");
  SharedProblems again(reordered);
  promise(at::equal(method.shift(reordered, again).weights.flat, result.weights.flat),
          "does not depend on the order of the cohort");
  return broken;
}

}  // namespace pumice::testing
