#include "pumice/model/training.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr std::int64_t largest_count = 1'000'000;  // of epochs, and of examples in a batch
constexpr std::int64_t largest_shift = 4;          // pixels, of the augmentation

at::Tensor index_of(const std::vector<std::int64_t>& order, std::int64_t first,
                    std::int64_t count) {
  return at::tensor(
      at::ArrayRef<std::int64_t>(order.data() + first, static_cast<std::size_t>(count)), at::kLong);
}

std::int64_t count_wrong(const at::Tensor& logits, const at::Tensor& labels) {
  return logits.argmax(1).ne(labels).sum().item<std::int64_t>();
}

// True for the first text, false for the second; anything else is an error.
bool one_of(const nlohmann::json& json, const char* key, const char* first, const char* second) {
  const std::string value = json.at(key);
  if (value != first && value != second) {
    fail("metadata: recipe '", key, "' = '", value, "', must be ", first, " or ", second);
  }
  return value == first;
}

void check_number(const char* name, double value, bool allowed, const char* rule) {
  if (!std::isfinite(value) || !allowed) fail(name, ": ", value, ", must be ", rule);
}

}  // namespace

TrainingOptions pretraining_recipe() {
  return {.epochs = 30,
          .rate = 0.1,
          .weight_decay = 0.0005,
          .decay_centre = DecayCentre::zero,
          .update_statistics = true,
          .augment = true,
          .epochs_after_zero_error = std::nullopt};
}

TrainingOptions finetuning_recipe() {
  return {};
}

void check(const TrainingOptions& options) {
  check_number("epochs", static_cast<double>(options.epochs),
               options.epochs >= 1 && options.epochs <= largest_count, "in 1 … 1,000,000");
  check_number("batch", static_cast<double>(options.batch_size),
               options.batch_size >= 1 && options.batch_size <= largest_count, "in 1 … 1,000,000");
  check_number("rate", options.rate, options.rate > 0, "> 0");
  check_number("momentum", options.momentum, options.momentum >= 0 && options.momentum < 1,
               "in [0, 1)");
  check_number("weight-decay", options.weight_decay, options.weight_decay >= 0, ">= 0");
  if (options.epochs_after_zero_error) {
    check_number("after-zero-error", static_cast<double>(*options.epochs_after_zero_error),
                 *options.epochs_after_zero_error >= 0, ">= 0");
  }
}

nlohmann::json to_json(const TrainingOptions& options) {
  nlohmann::json json{
      {"epochs", options.epochs},
      {"batch_size", options.batch_size},
      {"rate", options.rate},
      {"momentum", options.momentum},
      {"weight_decay", options.weight_decay},
      {"decay_centre", options.decay_centre == DecayCentre::start ? "start" : "zero"},
      {"schedule", options.schedule == Schedule::constant ? "constant" : "one-cycle"},
      {"batch_norm_statistics", options.update_statistics ? "trained" : "frozen"},
      {"augment", options.augment},
      {"seed", options.seed},
      {"order_seed", options.order_seed}};
  if (options.epochs_after_zero_error) {
    json["epochs_after_zero_error"] = *options.epochs_after_zero_error;
  }
  return json;
}

TrainingOptions training_options_from_json(const nlohmann::json& json) {
  try {
    TrainingOptions options{
        .epochs = json.at("epochs"),
        .batch_size = json.at("batch_size"),
        .rate = json.at("rate"),
        .momentum = json.at("momentum"),
        .weight_decay = json.at("weight_decay"),
        .decay_centre =
            one_of(json, "decay_centre", "zero", "start") ? DecayCentre::zero : DecayCentre::start,
        .schedule = one_of(json, "schedule", "one-cycle", "constant") ? Schedule::one_cycle
                                                                      : Schedule::constant,
        .update_statistics = one_of(json, "batch_norm_statistics", "trained", "frozen"),
        .augment = json.at("augment"),
        .epochs_after_zero_error = std::nullopt,
        .seed = json.at("seed"),
        .order_seed = json.at("order_seed")};
    if (json.contains("epochs_after_zero_error")) {
      options.epochs_after_zero_error = json.at("epochs_after_zero_error").get<std::int64_t>();
    }
    return options;
  } catch (const nlohmann::json::exception& reason) {
    fail("metadata: the stored recipe cannot be read, ", reason.what());
  }
}

nlohmann::json to_json(const EpochReport& report) {
  nlohmann::json json{{"epoch", report.epoch},
                      {"loss", report.loss},
                      {"error", report.error},
                      {"rate", report.rate},
                      {"seconds", report.seconds}};
  if (report.training_error) json["training_error"] = *report.training_error;
  return json;
}

EpochReport epoch_report_from_json(const nlohmann::json& json) {
  EpochReport report{.epoch = json.at("epoch"),
                     .loss = json.at("loss"),
                     .error = json.at("error"),
                     .training_error = {},
                     .rate = json.at("rate"),
                     .seconds = json.at("seconds")};
  if (json.contains("training_error"))
    report.training_error = json.at("training_error").get<double>();
  return report;
}

std::vector<std::int64_t> training_places(const TrainingSet& set, std::uint64_t seed) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < set.dataset.size(); ++i) places.push_back(i);
  for (const std::int64_t position : set.excluded)
    places.at(static_cast<std::size_t>(position)) = -1;
  std::vector<std::int64_t> retained;
  for (const std::int64_t position : places) {
    if (position >= 0) retained.push_back(position);
  }
  if (retained.empty()) fail("training: every example is excluded, nothing is left to train on");
  if (!set.replace) return places;
  // Each retained example stands in at most once, while there are enough of them.
  RandomStream stream(seed, "replacement");
  std::vector<std::int64_t> pool;
  for (std::int64_t& position : places) {
    if (position >= 0) continue;
    if (pool.empty()) pool = stream.permutation(static_cast<std::int64_t>(retained.size()));
    position = retained[static_cast<std::size_t>(pool.back())];
    pool.pop_back();
  }
  return places;
}

std::vector<std::int64_t> training_order(const std::vector<std::int64_t>& places,
                                         std::uint64_t order_seed, std::int64_t epoch) {
  RandomStream stream(order_seed, text("order/", epoch));
  std::vector<std::int64_t> order;
  for (const std::int64_t place : stream.permutation(static_cast<std::int64_t>(places.size()))) {
    const std::int64_t position = places[static_cast<std::size_t>(place)];
    if (position >= 0) order.push_back(position);
  }
  return order;
}

double learning_rate(const TrainingOptions& options, std::int64_t step, std::int64_t steps) {
  if (options.schedule == Schedule::constant) return options.rate;
  const double position =
      static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, steps - 1));
  const double first = options.rate / 25;
  const double last = options.rate / 10'000;
  const double turn = 0.3;
  if (position < turn) return first + (options.rate - first) * position / turn;
  const double fall = (position - turn) / (1 - turn);
  return last + (options.rate - last) * (1 + std::cos(std::numbers::pi * fall)) / 2;
}

at::Tensor augmented(const at::Tensor& images, RandomStream& stream) {
  const at::Tensor padded =
      at::constant_pad_nd(images, {largest_shift, largest_shift, largest_shift, largest_shift}, 0);
  at::Tensor result = at::empty_like(images);
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    const auto down = static_cast<std::int64_t>(stream.below(2 * largest_shift + 1));
    const auto right = static_cast<std::int64_t>(stream.below(2 * largest_shift + 1));
    at::Tensor cut = padded[i].narrow(1, down, images.size(2)).narrow(2, right, images.size(3));
    if (stream.below(2) == 1) cut = cut.flip({2});
    result[i].copy_(cut);
  }
  return result;
}

Training::Training(Model& model, const Weights& start, const TrainingSet& set,
                   const Normalization& normalization, const TrainingOptions& options)
    : model_(model), dataset_(set.dataset), normalization_(normalization), options_(options) {
  check(options);
  if (options.update_statistics) {
    statistics_ = dynamic_cast<TrainableStatistics*>(&model);
    if (!statistics_) fail("batch-norm statistics: this model's cannot be trained, only frozen");
  }
  if (options.decay_centre == DecayCentre::start) centre_ = start.flat.detach().clone();
  places_ = training_places(set, options.seed);
  state_.weights = {start.layout, start.flat.detach().clone()};
  state_.velocity = at::zeros_like(state_.weights.flat);
}

void Training::restore(TrainingState state) {
  state_ = std::move(state);
}

std::int64_t Training::examples_per_epoch() const {
  return std::count_if(places_.begin(), places_.end(),
                       [](std::int64_t position) { return position >= 0; });
}

bool Training::finished() const {
  const auto& history = state_.history;
  if (static_cast<std::int64_t>(history.size()) >= options_.epochs) return true;
  if (!options_.epochs_after_zero_error) return false;
  const auto first_zero =
      std::find_if(history.begin(), history.end(),
                   [](const EpochReport& report) { return report.training_error == 0.0; });
  return history.end() - first_zero > *options_.epochs_after_zero_error;
}

void Training::explain_divergence(std::int64_t epoch, const at::Tensor& inputs) const {
  const char* cause = "the rate is probably too high";
  if (!inputs.isfinite().all().item<bool>()) {
    cause = "the images contain NaN or infinity";
  } else if (state_.history.empty() && !state_.weights.flat.isfinite().all().item<bool>()) {
    cause = "the weights it started from contain NaN or infinity";
  }
  fail("training: the loss is not finite in epoch ", epoch, " (rate ", options_.rate, "); ", cause);
}

std::optional<EpochReport> Training::run_epoch(const std::function<bool(std::int64_t)>& on_batch) {
  const auto begin = std::chrono::steady_clock::now();
  EpochReport report;
  report.epoch = static_cast<std::int64_t>(state_.history.size()) + 1;
  const std::vector<std::int64_t> order =
      training_order(places_, options_.order_seed, report.epoch);
  const auto count = static_cast<std::int64_t>(order.size());
  const std::int64_t steps = (count + options_.batch_size - 1) / options_.batch_size;

  at::Tensor flat = state_.weights.flat.clone();
  at::Tensor velocity = state_.velocity.clone();
  RandomStream augmentation(options_.order_seed, text("augmentation/", report.epoch));
  std::int64_t wrong = 0;
  double loss_sum = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t first = step * options_.batch_size;
    const std::int64_t size = std::min(options_.batch_size, count - first);
    const at::Tensor index = index_of(order, first, size);
    at::Tensor images = dataset_.images.index_select(0, index);
    if (options_.augment) images = augmented(images, augmentation);
    const at::Tensor inputs = network_inputs(images, normalization_);
    const at::Tensor labels = dataset_.labels.index_select(0, index);

    const Weights leaf{state_.weights.layout, flat.detach().requires_grad_()};
    const at::Tensor logits =
        statistics_ ? statistics_->logits_in_training(leaf, inputs) : model_.logits(leaf, inputs);
    if (logits.size(1) != dataset_.classes.size()) {
      fail("model: ", logits.size(1), " outputs, but the data have ", dataset_.classes.size(),
           " classes");
    }
    if (!logits.requires_grad()) {
      fail(
          "model: its outputs do not depend on its weights as far as gradients can tell; was it "
          "saved "
          "with torch.no_grad() or detach()?");
    }
    const at::Tensor loss = at::cross_entropy_loss(logits, labels);
    const double value = loss.item<double>();
    if (!std::isfinite(value)) explain_divergence(report.epoch, inputs);
    at::Tensor gradient = torch::autograd::grad({loss}, {leaf.flat}).front();

    at::NoGradGuard no_grad;
    if (options_.weight_decay > 0) {
      gradient = gradient.add_(flat, options_.weight_decay);
      if (centre_.defined()) gradient.sub_(centre_, options_.weight_decay);
    }
    report.rate =
        learning_rate(options_, (report.epoch - 1) * steps + step, options_.epochs * steps);
    velocity.mul_(options_.momentum).add_(gradient);
    flat.sub_(velocity, report.rate);

    loss_sum += value * static_cast<double>(size);
    wrong += count_wrong(logits, labels);
    if (!on_batch(first + size)) return {};
  }

  // The last step of an epoch shows in no loss; without this it could be stored as a good state.
  bool finite = flat.isfinite().all().item<bool>() && velocity.isfinite().all().item<bool>();
  for (const auto& [name, tensor] : model_.buffers()) {
    finite = finite && (!tensor.is_floating_point() || tensor.isfinite().all().item<bool>());
  }
  if (!finite) {
    fail("training: weights or batch-norm statistics are not finite after epoch ", report.epoch,
         " (rate ", options_.rate,
         "); the rate is too high, or a batch has too few values for its own statistics");
  }
  state_.weights.flat = flat;
  state_.velocity = velocity;
  report.loss = loss_sum / static_cast<double>(count);
  report.error = static_cast<double>(wrong) / static_cast<double>(count);
  if (options_.epochs_after_zero_error) {
    report.training_error =
        evaluate(model_, state_.weights, subset(dataset_, order), normalization_).error;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  state_.history.push_back(report);
  return report;
}

void train_to_end(Training& training, const TrainingOptions& options,
                  const std::function<void(double share)>& progress) {
  const auto examples = static_cast<double>(training.examples_per_epoch());
  while (!training.finished()) {
    const auto done = static_cast<double>(training.state().history.size());
    training.run_epoch([&](std::int64_t seen) {
      if (progress) {
        progress((done + static_cast<double>(seen) / examples) /
                 static_cast<double>(options.epochs));
      }
      return true;
    });
  }
}

Evaluation evaluate(const Model& model, const Weights& weights, const Dataset& dataset,
                    const Normalization& normalization, std::int64_t batch_size) {
  at::NoGradGuard no_grad;
  Evaluation evaluation{.loss = 0, .error = 0, .wrong = 0, .count = dataset.size()};
  double loss_sum = 0;
  for (std::int64_t first = 0; first < dataset.size(); first += batch_size) {
    const std::int64_t size = std::min(batch_size, dataset.size() - first);
    const at::Tensor logits =
        model.logits(weights, network_inputs(dataset.images.narrow(0, first, size), normalization));
    const at::Tensor labels = dataset.labels.narrow(0, first, size);
    loss_sum += at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum).item<double>();
    evaluation.wrong += count_wrong(logits, labels);
  }
  if (evaluation.count > 0) {
    evaluation.loss = loss_sum / static_cast<double>(evaluation.count);
    evaluation.error =
        static_cast<double>(evaluation.wrong) / static_cast<double>(evaluation.count);
  }
  return evaluation;
}

}  // namespace pumice
