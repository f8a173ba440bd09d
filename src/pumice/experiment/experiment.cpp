#include "pumice/experiment/experiment.h"

#include <chrono>

#include "pumice/core/error.h"
#include "pumice/core/folder_lock.h"
#include "pumice/core/interrupt.h"
#include "pumice/core/memory.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One bar over all steps. Its unit is a hundredth of a forecast second, so that long steps count
// for more; a step that is done counts for what was forecast.
class ExperimentProgress {
 public:
  ExperimentProgress(double total, double done, ProgressMode mode)
      : done_(done), bar_("experiment", units(total), mode, units(done)) {}

  void update(const Step& step, const std::string& what, double share) {
    if (interrupted()) fail("interrupted; the same command continues");
    bar_.update(units(done_ + share * step.seconds), text(step.title, " (", what, ")"));
  }
  void finish(const Step& step, double seconds) {
    done_ += step.seconds;
    bar_.line(text(step.title, ": ", duration_text(seconds)));
    bar_.update(units(done_));
  }

 private:
  static std::int64_t units(double seconds) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(100 * seconds));
  }
  double done_;
  Progress bar_;
};

}  // namespace

Experiment::Experiment(Protocol protocol, fs::path out, int threads)
    : setup_(std::move(protocol), std::move(out), threads) {
  const SeedData& first = setup_.seeds().front();
  const Start network = setup_.network_for(first);
  const Dataset& train = first.selection.train;
  forecast_ = forecast_work(*network.model, network.weights,
                            network_inputs(train.images, measure_normalization(train)),
                            setup_.protocol().recipe.batch_size, setup_.protocol().memory);
  if (setup_.pretraining()) {
    pretraining_ =
        pretraining_step(setup_, forecast_, [this](const std::string& what, double share) {
          if (progress_) progress_(what, share);
        });
  }
  for (const SeedData& data : setup_.seeds()) {
    for (std::int64_t cohort = 1; cohort <= setup_.protocol().cohorts; ++cohort) {
      contexts_.push_back(std::make_unique<RunContext>(setup_, data, cohort));
      runs_.push_back(plan_run(*contexts_.back(), forecast_, runs_.empty()));
    }
  }
  // The cohorts of a seed share w(D): it is trained for the first one.
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    std::erase_if(runs_[i].steps, [&](const Step& step) {
      return contexts_[i]->cohort() > 1 && step.key.digest() == runs_[i].original.digest();
    });
  }
}

Experiment::~Experiment() = default;

std::vector<const Step*> Experiment::all_steps() const {
  std::vector<const Step*> all;
  if (pretraining_) all.push_back(&*pretraining_);
  for (const RunSteps& run : runs_) {
    for (const Step& step : run.steps) all.push_back(&step);
  }
  return all;
}

std::vector<StepListing> Experiment::steps() const {
  std::vector<StepListing> listings;
  for (const Step* step : all_steps()) {
    const auto done = setup_.store().find(step->key);
    listings.push_back({.title = step->title,
                        .done = done.has_value(),
                        .seconds = done ? done->seconds : step->seconds,
                        .bytes = step->bytes,
                        .folder = setup_.store().folder_of(step->key)});
  }
  return listings;
}

Experiment::Summary Experiment::run(ProgressMode mode) {
  const auto begin = std::chrono::steady_clock::now();
  std::error_code reason;
  fs::create_directories(setup_.out() / "steps", reason);
  if (reason) fail(setup_.out().string(), ": cannot be made, ", reason.message());
  const FolderLock lock(setup_.out());
  Summary summary;
  double total = 0, done = 0;
  for (const Step* step : all_steps()) {
    ++summary.steps;
    total += step->seconds;
    if (!setup_.store().find(step->key)) continue;
    ++summary.done_before;
    done += step->seconds;
  }
  ExperimentProgress bar(total, done, mode);
  const auto perform = [&](const Step& step) {
    if (setup_.store().find(step.key)) return;
    const auto started = std::chrono::steady_clock::now();
    progress_ = [&](const std::string& what, double share) { bar.update(step, what, share); };
    progress_("begins", 0);
    const fs::path folder = setup_.store().prepare(step.key);
    const nlohmann::json content = step.work(folder);
    const double seconds = content.is_object() && step.key.kind.ends_with("training")
                               ? content.at("seconds").get<double>()
                               : seconds_since(started);
    setup_.store().finish(step.key, {.content = content, .seconds = seconds});
    bar.finish(step, seconds);
  };
  if (pretraining_) perform(*pretraining_);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    contexts_[i]->set_progress(
        [this](const std::string& what, double share) { progress_(what, share); });
    for (const Step& step : runs_[i].steps) perform(step);
    contexts_[i]->release();
    release_freed_memory();
  }
  progress_ = {};
  summary.seconds = seconds_since(begin);
  return summary;
}

}  // namespace pumice
