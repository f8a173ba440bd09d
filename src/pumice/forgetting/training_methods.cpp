// The two methods that train.
//   finetune  a few more epochs on Dr (rate .01, no momentum), decay to where it starts, w(D)
//   retrain   the recipe of w(D) from w0, with the same seeds and the cohort left out
#include "pumice/core/error.h"
#include "pumice/forgetting/forgetting_method.h"

namespace pumice {
namespace {

// Trains and fills the summary. `start` is where the training begins.
ShiftResult trained(const ForgettingTask& task, const Weights& start, TrainingOptions options,
                    bool replace) {
  ShiftResult result{.weights = {task.weights.layout, {}}, .summary = {}};
  SummaryClock clock(task, result.summary);
  const TrainingSet set{task.train, task.split.cohort, replace};
  Training training(task.model, start, set, task.normalization, options);
  const double examples = static_cast<double>(training.examples_per_epoch());
  train_to_end(training, options, [&](double share) {
    if (task.linear.progress) task.linear.progress("training", share);
  });
  result.weights.flat = training.state().weights.flat;
  const auto epochs = static_cast<double>(training.state().history.size());
  result.summary.epochs = static_cast<std::int64_t>(epochs);
  clock.finish(result.weights.flat, epochs * examples / static_cast<double>(task.train.size()));
  return result;
}

class Finetune final : public ForgettingMethod {
 public:
  explicit Finetune(const MethodOptions& options)
      : epochs_(options.finetune_epochs), rate_(options.finetune_rate) {}

  ShiftResult shift(const ForgettingTask& task, SharedProblems&) const override {
    TrainingOptions options = task.recipe;
    options.epochs = epochs_;
    options.rate = rate_;
    options.momentum = 0;
    options.weight_decay = task.weight_decay;
    options.decay_centre = DecayCentre::start;
    options.schedule = Schedule::constant;
    options.update_statistics = false;
    options.augment = false;
    options.epochs_after_zero_error.reset();
    return trained(task, task.weights, options, false);
  }

 private:
  std::int64_t epochs_;
  double rate_;
};

class Retrain final : public ForgettingMethod {
 public:
  explicit Retrain(bool replace) : replace_(replace) {}

  ShiftResult shift(const ForgettingTask& task, SharedProblems&) const override {
    if (!task.start) fail("retrain: the start is not known, must be given (--init)");
    TrainingOptions options = task.recipe;
    options.weight_decay = task.weight_decay;
    if (options.update_statistics) {
      fail(
          "retrain: the recipe trains batch-norm statistics, must have frozen ones; use pumice "
          "train");
    }
    const Weights start{task.weights.layout, task.start->to(task.weights.flat.scalar_type())};
    return trained(task, start, options, replace_);
  }

 private:
  bool replace_;
};

}  // namespace

std::unique_ptr<ForgettingMethod> make_finetune(const MethodOptions& options) {
  return std::make_unique<Finetune>(options);
}

std::unique_ptr<ForgettingMethod> make_retrain(const MethodOptions& options) {
  return std::make_unique<Retrain>(options.replace);
}

}  // namespace pumice
