// The steps that train.
#include <fstream>

#include "pumice/core/error.h"
#include "pumice/experiment/run_steps.h"
#include "pumice/model/training_run.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<EpochReport> logged_epochs(const fs::path& log) {
  std::vector<EpochReport> epochs;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    epochs.push_back(epoch_report_from_json(Json::parse(line)));
  }
  return epochs;
}

}  // namespace

Json run_training_step(const fs::path& out, Model& model, const Weights& start,
                       const TrainingSet& set, const Normalization& normalization,
                       const TrainingOptions& recipe, const Metadata& metadata, bool keep_epochs,
                       const std::function<void(double share)>& progress) {
  Weights weights{start.layout, start.flat.clone()};
  // The folder's name is the digest of all that the result depends on: a result without a state to
  // resume from is this very training's, finished before its step was.
  if (fs::exists(out) && !fs::exists(resume_path(out))) {
    weights = open_checkpoint(out).weights;
  } else {
    const TrainingRunSummary summary = run_training(model, weights, set, normalization,
                                                    {.out = out,
                                                     .training = recipe,
                                                     .metadata = metadata,
                                                     .resume = true,
                                                     .keep_epochs = keep_epochs,
                                                     .progress = ProgressMode::quiet,
                                                     .observer = progress});
    if (summary.status == TrainingRunStatus::interrupted) {
      fail("interrupted; the same command continues");
    }
  }
  const std::vector<EpochReport> epochs = logged_epochs(log_path(out));
  double seconds = 0;
  for (const EpochReport& epoch : epochs) seconds += epoch.seconds;
  const double displacement =
      (weights.flat.to(at::kDouble) - start.flat.to(at::kDouble)).norm().item<double>();
  return {{"epochs", epochs.size()}, {"seconds", seconds}, {"displacement", displacement}};
}

Step pretraining_step(const ExperimentSetup& setup, const WorkForecast& work,
                      const StepProgress& progress) {
  const Pretraining& pretraining = *setup.protocol().model.pretraining;
  Step step{.key = *setup.pretraining(),
            .title = text("pre-train the body on ", pretraining.data.spec),
            .seconds = 0,
            .bytes = work.training_bytes,
            .work = {}};
  // Forecast for examples of the fine-tuning set; the pre-training set is counted when it is read.
  const auto examples = static_cast<double>(setup.seeds().front().selection.train.size());
  const auto source = open_source(pretraining.data.spec, pretraining.data.source);
  const ClassTable& classes = source->classes();
  const auto chosen = pretraining.data.selection.classes.empty()
                          ? classes.size()
                          : static_cast<std::int64_t>(
                                parse_classes(pretraining.data.selection.classes, classes).size());
  const double listed = pretraining.data.selection.per_class
                            ? static_cast<double>(*pretraining.data.selection.per_class * chosen)
                            : static_cast<double>(source->listing(Part::train).size()) *
                                  static_cast<double>(chosen) / static_cast<double>(classes.size());
  step.seconds =
      work.epoch_seconds * static_cast<double>(pretraining.recipe.epochs) * listed / examples;
  step.work = [&setup, &pretraining, progress](const fs::path&) {
    const Selection selection = load(pretraining.data);
    const Normalization normalization = measure_normalization(selection.train);
    const ModelProtocol& model = setup.protocol().model;
    const Start start =
        fresh_start(model.architecture, model.width, selection.train, pretraining.recipe.seed);
    return run_training_step(
        setup.pretrained_file(), *start.model, start.weights, {selection.train, {}, false},
        normalization, pretraining.recipe,
        training_metadata(pretraining.data, selection.train, normalization, 0, false), false,
        [&](double share) { progress("pre-training", share); });
  };
  return step;
}

}  // namespace pumice
