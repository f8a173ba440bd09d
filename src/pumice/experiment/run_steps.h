// The steps of one run, in the order in which they are done.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pumice/experiment/forecast.h"
#include "pumice/experiment/run_context.h"
#include "pumice/experiment/step_store.h"

namespace pumice {

struct Step {
  StepKey key;
  std::string title;
  double seconds = 0;      // forecast
  std::int64_t bytes = 0;  // forecast, of memory
  // Gives the content of the result. `folder` is the step's own; what it holds already was left by
  // an earlier start that did not come to the end.
  std::function<nlohmann::json(const std::filesystem::path& folder)> work;
};

// Where a run's results are: the record is put together from these.
struct RunSteps {
  std::vector<Step> steps;
  StepKey original;
  std::vector<StepKey> references;
  std::map<std::string, StepKey> scrubs, audits, tradeoffs;  // by label
  std::optional<StepKey> ablations, landscape, projection;
};

// `context` must outlive the steps. `drawn`: landscape and projection are for figures, which show
// one run.
RunSteps plan_run(RunContext& context, const WorkForecast& work, bool drawn);

// The body's own step. Keeps the epochs' state, so it continues where it was killed.
Step pretraining_step(const ExperimentSetup& setup, const WorkForecast& work,
                      const StepProgress& progress);

// Trains, or continues, or finds that all is done: NAME.safetensors and its companions in `folder`
// (training_run.h). Throws Error when interrupted. Gives epochs, seconds, displacement.
nlohmann::json run_training_step(const std::filesystem::path& out, Model& model,
                                 const Weights& start, const TrainingSet& set,
                                 const Normalization& normalization, const TrainingOptions& recipe,
                                 const Metadata& metadata, bool keep_epochs,
                                 const std::function<void(double share)>& progress);

}  // namespace pumice
