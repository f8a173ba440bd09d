// The short table at the end of a run, from the record alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pumice {

// Mean and standard deviation (of a sample; 0 for one value) over runs; values that are not finite
// are left out and counted.
struct OverRuns {
  double mean = 0;
  double deviation = 0;
  std::int64_t count = 0;
  std::int64_t left_out = 0;
};
OverRuns over_runs(const std::vector<nlohmann::json>& values);

// Method × error on cohort, retained and test examples, attack, distance to the retrained models,
// verdict; the last row is the retrained models themselves. "12.0 ± 4.0" over runs.
std::string results_table(const nlohmann::json& experiment);

// The three lines that matter: the cohort's error in the original, the scrubbed and the retrained
// models; the distance to retrained models against the floor; the verdict. `method` is a label.
std::string three_lines(const nlohmann::json& experiment, const std::string& method);

}  // namespace pumice
