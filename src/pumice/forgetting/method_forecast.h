// What a deletion request will cost, method by method, before any of it is done.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/forgetting/scrub.h"
#include "pumice/forgetting/solve_forecast.h"

namespace pumice {

struct MethodForecast {
  std::string method;
  double seconds = 0, seconds_low = 0, seconds_high = 0;
  std::int64_t bytes = 0;        // at most at a time, on top of the model and the data
  double epoch_equivalents = 0;  // FLOPs, alone, as multiples of one training epoch on D
  std::optional<SolverChoice> solver = {};
  std::string note = {};  // what the numbers rest on
};
nlohmann::json to_json(const MethodForecast& forecast);

// One for each request, in order: a kernel that an earlier one computes saves the later ones time,
// and counts in the work of each all the same.
//   linearised methods: choose_solver(); training: its epochs (an upper limit where a rule may stop
//   it early); noise: one forward pass and, for each class, one backward pass with its rows of the
//   Jacobian, over the retained examples.
// The scale rule and the examination (about ten forward passes) are left out.
// Cost: about a second of measuring, and for linearised methods the kernel of a few examples.
std::vector<MethodForecast> forecast_methods(const ForgettingTask& task, SharedProblems& shared,
                                             const std::vector<ScrubOptions>& requests);

// A table for people: a line for each method, then why its solver was chosen.
std::string forecast_text(const std::vector<MethodForecast>& forecasts);

}  // namespace pumice
