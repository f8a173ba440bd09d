#include "pumice/evaluation/relearn_time.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/model/training.h"

namespace pumice {
namespace {

void check(const RelearnOptions& options) {
  if (!(options.rate > 0) || !std::isfinite(options.rate)) {
    fail("relearn rate: ", options.rate, ", must be > 0");
  }
  if (options.batch_size < 1) fail("relearn batch: ", options.batch_size, ", must be >= 1");
  if (options.max_epochs < 1) fail("relearn epochs: ", options.max_epochs, ", must be >= 1");
  if (!(options.weight_decay >= 0) || !std::isfinite(options.weight_decay)) {
    fail("relearn weight-decay: ", options.weight_decay, ", must be >= 0");
  }
  if (!(options.tolerance >= 0)) fail("relearn tolerance: ", options.tolerance, ", must be >= 0");
}

void check_layout(const char* whose, const Model& model, const Weights& weights) {
  if (*weights.layout == model.layout()) return;
  fail("relearn time: the weights of ", whose, " have ", weights.layout->total(),
       " values or other names and shapes, the model has ", model.layout().total());
}

std::vector<std::int64_t> draws(std::int64_t examples, std::uint64_t seed, std::int64_t epoch) {
  RandomStream stream(seed, text("relearn/", epoch));
  std::vector<std::int64_t> positions(static_cast<std::size_t>(examples));
  for (std::int64_t& position : positions) {
    position = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(examples)));
  }
  return positions;
}

// One epoch; changes `flat`, which nobody else holds.
void relearn_epoch(const Model& model, Weights& weights, const at::Tensor& start,
                   const Dataset& train, const Normalization& normalization,
                   const RelearnOptions& options, std::int64_t epoch) {
  const std::vector<std::int64_t> order = draws(train.size(), options.seed, epoch);
  for (std::int64_t first = 0; first < train.size(); first += options.batch_size) {
    const std::int64_t count = std::min(options.batch_size, train.size() - first);
    const at::Tensor index = at::tensor(
        at::ArrayRef<std::int64_t>(order.data() + first, static_cast<std::size_t>(count)));
    const at::Tensor inputs = network_inputs(train.images.index_select(0, index), normalization);
    const Weights leaf{weights.layout, weights.flat.detach().requires_grad_()};
    const at::Tensor loss =
        at::cross_entropy_loss(model.logits(leaf, inputs), train.labels.index_select(0, index));
    const at::Tensor gradient = torch::autograd::grad({loss}, {leaf.flat}).front();
    at::NoGradGuard no_gradient;
    at::Tensor next = weights.flat.sub(gradient, options.rate);
    if (options.weight_decay > 0) {
      next.sub_(weights.flat - start, options.rate * options.weight_decay);
    }
    weights.flat = next;
  }
}

}  // namespace

std::string RelearnTime::text() const {
  if (!explanation.empty()) return "failed";
  return epochs ? std::to_string(*epochs) : "> " + std::to_string(limit);
}

RelearnTime relearn_time(const Model& model, const Weights& weights, const Weights& original,
                         const Dataset& train, const std::vector<std::int64_t>& cohort,
                         const Normalization& normalization, const RelearnOptions& options) {
  check(options);
  check_layout("the model under test", model, weights);
  check_layout("the original", model, original);
  if (cohort.empty()) fail("relearn time: the cohort is empty");
  const Dataset forgotten = subset(train, cohort);
  const auto loss_of = [&](const Weights& current) {
    return evaluate(model, current, forgotten, normalization).loss;
  };
  RelearnTime time;
  time.limit = options.max_epochs;
  time.target = loss_of(original) + options.tolerance;
  time.losses.push_back(loss_of(weights));
  if (time.losses.back() <= time.target) {
    time.epochs = 1;
    return time;
  }
  const at::Tensor start = weights.flat.detach();
  Weights current{weights.layout, start.clone()};
  for (std::int64_t epoch = 1; epoch <= options.max_epochs; ++epoch) {
    relearn_epoch(model, current, start, train, normalization, options, epoch);
    time.losses.push_back(loss_of(current));
    if (!std::isfinite(time.losses.back())) {
      time.explanation =
          pumice::text("the loss is not finite after epoch ", epoch, ", the rate is too high");
      return time;
    }
    if (time.losses.back() <= time.target) {
      time.epochs = epoch;
      return time;
    }
    if (options.progress) {
      options.progress(static_cast<double>(epoch) / static_cast<double>(options.max_epochs));
    }
  }
  return time;
}

Readout relearn_readout(const RelearnTime& time) {
  Readout readout{.name = "relearn time",
                  .unit = "epochs",
                  .definition = text("first epoch of fine-tuning on all training examples after "
                                     "which the loss on the cohort is at most the original's, "
                                     "within ",
                                     time.limit, " epochs"),
                  .direction = ReadoutDirection::like_retrained};
  if (!time.explanation.empty()) {
    readout.value = std::numeric_limits<double>::quiet_NaN();
    readout.reason = time.explanation;
  } else if (time.epochs) {
    readout.value = static_cast<double>(*time.epochs);
  } else {
    readout.value = static_cast<double>(time.limit);
    readout.interval = Interval{.low = readout.value,
                                .high = std::numeric_limits<double>::infinity(),
                                .method = text("censored: more than ", time.limit)};
  }
  return readout;
}

}  // namespace pumice
