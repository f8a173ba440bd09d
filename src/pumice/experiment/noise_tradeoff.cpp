#include "pumice/experiment/noise_tradeoff.h"

#include <cmath>

#include "pumice/evaluation/readout.h"
#include "pumice/experiment/loss_landscape.h"

namespace pumice {
namespace {

SeparateAnswers scaled(SeparateAnswers answers, double scale) {
  answers.covariance = answers.covariance * scale;
  return answers;
}

double mean_nats(const SeparateAnswers& subject, const SeparateAnswers& reference, double scale,
                 double floor) {
  const auto bounds =
      query_bounds(scaled(subject, scale), scaled(reference, scale), {.floor = floor});
  double sum = 0;
  for (const GaussianDivergence& bound : bounds) sum += bound.nats();
  return sum / static_cast<double>(bounds.size());
}

}  // namespace

TradeoffSide tradeoff_side(const ForgettingTask& task, const Dataset& test, const Weights& mean,
                           const TradeoffOptions& options) {
  NoiseOptions unit = options.noise;
  unit.scale = 1;
  TradeoffSide side{.unit = with_noise(task, unit, mean), .cohort = {}, .retain = {}, .test = {}};
  const auto answers = [&](const Dataset& dataset, const char* what) {
    return separate_answers(
        task.model, side.unit, loss_examples(dataset, task.normalization, options.queries).inputs,
        {.answers = options.answers, .memory = task.linear.memory, .progress = [&](double share) {
           if (task.linear.progress) task.linear.progress(what, share);
         }});
  };
  side.cohort = answers(subset(task.train, task.split.cohort), "answers on the cohort");
  side.retain = answers(subset(task.train, task.split.retain), "answers on retained examples");
  side.test = answers(test, "answers on test examples");
  return side;
}

nlohmann::json noise_tradeoff(const ForgettingTask& task, const Dataset& test,
                              const TradeoffSide& subject, const TradeoffSide& reference,
                              const TradeoffOptions& options) {
  const Dataset cohort = subset(task.train, task.split.cohort);
  const Dataset retain = subset(task.train, task.split.retain);
  nlohmann::json entries = nlohmann::json::array();
  for (const double scale : options.scales) {
    const auto at_scale = [&](const TradeoffSide& side) {
      return WeightDistribution{.mean = side.unit.mean, .variance = side.unit.variance * scale};
    };
    const Weights sample = draw(at_scale(subject), options.noise.seed);
    const auto error = [&](const Dataset& dataset) {
      return evaluate(task.model, sample, dataset, task.normalization).error;
    };
    entries.push_back(
        {{"noise", scale},
         {"cohort_error", error(cohort)},
         {"retain_error", error(retain)},
         {"test_error", error(test)},
         {"white_box", json_number(white_box_bound(at_scale(subject), at_scale(reference)).nats())},
         {"black_box_cohort",
          json_number(mean_nats(subject.cohort, reference.cohort, scale, options.floor))},
         {"black_box_retain",
          json_number(mean_nats(subject.retain, reference.retain, scale, options.floor))},
         {"black_box_test",
          json_number(mean_nats(subject.test, reference.test, scale, options.floor))}});
  }
  return entries;
}

}  // namespace pumice
