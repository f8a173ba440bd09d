// An experiment: all steps of all runs of a protocol, done one after the other, each once.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pumice/core/progress.h"
#include "pumice/experiment/run_steps.h"

namespace pumice {

struct StepListing {
  std::string title;
  bool done = false;
  double seconds = 0;  // that it took if it is done, else a forecast
  std::int64_t bytes = 0;
  std::filesystem::path folder;
};

class Experiment {
 public:
  // Opens data and body and plans all steps; throws Error before any work if something is not at
  // hand. Measures the machine for about half a second, for the forecast. Writes nothing.
  Experiment(Protocol protocol, std::filesystem::path out, int threads);
  ~Experiment();
  Experiment(const Experiment&) = delete;  // steps point into it
  Experiment& operator=(const Experiment&) = delete;

  const ExperimentSetup& setup() const { return setup_; }
  std::vector<StepListing> steps() const;

  struct Summary {
    std::int64_t steps = 0, done_before = 0;
    double seconds = 0;  // of this call
  };
  // Does what is not done yet. Killed at any moment and called again, it continues; an interrupt
  // (Ctrl-C) throws Error. `out` is made if it is missing, and locked meanwhile.
  Summary run(ProgressMode mode);

  // What the record of kind `experiment` holds (docs/records.md), once all steps are done. `key`:
  // of the cohorts' digests.
  nlohmann::json record(const std::string& command, const std::string& key) const;
  // Files and folders in `out` that still tell of the cohorts.
  std::vector<std::filesystem::path> traces() const;

 private:
  std::vector<const Step*> all_steps() const;

  ExperimentSetup setup_;
  std::optional<Step> pretraining_;
  std::vector<std::unique_ptr<RunContext>> contexts_;
  std::vector<RunSteps> runs_;
  WorkForecast forecast_;
  StepProgress progress_;  // of the step at work
};

}  // namespace pumice
