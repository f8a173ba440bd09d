// Training by stochastic gradient descent with momentum, reproducible epoch by epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/core/seed.h"
#include "pumice/data/dataset.h"
#include "pumice/data/normalization.h"
#include "pumice/model/model.h"

namespace pumice {

enum class DecayCentre { start, zero };
enum class Schedule {
  constant,
  // The rate rises linearly from rate/25 to rate over the first 30 % of all steps, then falls as
  // half a cosine to rate/10,000: a full training in few epochs.
  one_cycle,
};

// Objective: mean cross-entropy + λ/2 |w − centre|², λ = weight_decay, over all weights.
// Step: v ← momentum·v + gradient;  w ← w − rate·v.
struct TrainingOptions {
  std::int64_t epochs = 100;  // at most
  std::int64_t batch_size = 128;
  double rate = 0.01;
  double momentum = 0.9;
  double weight_decay = 0.1;
  DecayCentre decay_centre = DecayCentre::start;
  Schedule schedule = Schedule::constant;
  bool update_statistics = false;  // train batch-norm statistics (needs TrainableStatistics)
  bool augment = false;  // shift by up to 4 pixels (black border), flip left-right half the time
  // Stop this many epochs after the first with zero error on the training set (evaluated at its
  // end).
  std::optional<std::int64_t> epochs_after_zero_error = 5;
  std::uint64_t seed = 1;  // stream "replacement"; the head is drawn by whoever makes the start
  std::uint64_t order_seed = 1;  // streams "order/<epoch>", "augmentation/<epoch>"
};

// The two recipes of the paper. Fine-tuning is the default above with at most `epochs` epochs.
TrainingOptions
pretraining_recipe();  // 30 epochs, rate .1, decay .0005 to zero, augmented, statistics
TrainingOptions
finetuning_recipe();  // rate .01, decay .1 to the start, frozen, until zero error + 5

// Throws Error with option, value and rule.
void check(const TrainingOptions& options);
nlohmann::json to_json(const TrainingOptions& options);
TrainingOptions training_options_from_json(
    const nlohmann::json& json);  // throws Error naming the key

// What is trained on. Excluding examples keeps the order of the others: each epoch permutes all
// positions of the data set and passes over the excluded ones, so two trainings with the same seed
// meet the same examples in the same order where possible. With `replace`, each excluded place is
// filled by a repeat of a retained example (stream "replacement"), so that an epoch keeps its
// length.
struct TrainingSet {
  const Dataset& dataset;
  std::vector<std::int64_t> excluded;  // positions
  bool replace = false;
};

// The position in the data set that each place of an epoch trains on, −1 for none.
std::vector<std::int64_t> training_places(const TrainingSet& set, std::uint64_t seed);

// The positions of one epoch in order: a permutation of all places (stream "order/<epoch>"),
// without those that have none.
std::vector<std::int64_t> training_order(const std::vector<std::int64_t>& places,
                                         std::uint64_t order_seed, std::int64_t epoch);

// The rate of step 0 … steps−1.
double learning_rate(const TrainingOptions& options, std::int64_t step, std::int64_t steps);

// Each image shifted by −4 … 4 pixels in both directions (black comes in), then flipped with chance
// ½.
at::Tensor augmented(const at::Tensor& images, RandomStream& stream);

struct EpochReport {
  std::int64_t epoch = 0;  // from 1
  double loss = 0;         // mean cross-entropy over the epoch's batches, without the decay term
  double error = 0;        // share misclassified, likewise
  std::optional<double>
      training_error;  // evaluated at the epoch's end, if the stopping rule needs it
  double rate = 0;     // of the last step
  double seconds = 0;
};
nlohmann::json to_json(const EpochReport& report);
EpochReport epoch_report_from_json(const nlohmann::json& json);

// All that the next epoch depends on.
struct TrainingState {
  Weights weights;
  at::Tensor velocity;  // p
  std::vector<EpochReport> history;
};

// A training in progress. The state can be taken out after any epoch and put into a new Training
// with the same model (and its buffers), data and options: the result is the same to the bit.
class Training {
 public:
  // `start` is where decay pulls to (if it does). Throws Error for options that do not fit.
  Training(Model& model, const Weights& start, const TrainingSet& set,
           const Normalization& normalization, const TrainingOptions& options);

  void restore(TrainingState state);
  const TrainingState& state() const { return state_; }
  bool finished() const;
  std::int64_t examples_per_epoch() const;

  // One epoch. `on_batch(examples done)` is called after each batch; if it returns false the epoch
  // is abandoned, the state stays at the end of the epoch before (buffers excepted) and the result
  // is none. A loss that is not finite throws Error with the epoch and the likely cause.
  std::optional<EpochReport> run_epoch(const std::function<bool(std::int64_t)>& on_batch);

 private:
  [[noreturn]] void explain_divergence(std::int64_t epoch, const at::Tensor& inputs) const;

  Model& model_;
  TrainableStatistics* statistics_ = nullptr;  // set if they are trained
  at::Tensor centre_;                          // undefined: zero
  const Dataset& dataset_;
  std::vector<std::int64_t> places_;
  Normalization normalization_;
  TrainingOptions options_;
  TrainingState state_;
};

// Runs what is left. `progress` (may be empty) is told which share of the largest number of epochs
// is done; it may throw to give up.
void train_to_end(Training& training, const TrainingOptions& options,
                  const std::function<void(double share)>& progress);

struct Evaluation {
  double loss = 0;   // mean cross-entropy
  double error = 0;  // share misclassified
  std::int64_t wrong = 0;
  std::int64_t count = 0;
};

// Cost: one forward pass over the data. An empty data set gives zeros.
Evaluation evaluate(const Model& model, const Weights& weights, const Dataset& dataset,
                    const Normalization& normalization, std::int64_t batch_size = 256);

}  // namespace pumice
