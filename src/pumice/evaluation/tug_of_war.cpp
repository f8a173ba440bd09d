#include "pumice/evaluation/tug_of_war.h"

#include <algorithm>
#include <cmath>

#include "pumice/core/error.h"

namespace pumice {
namespace {

void check_answers(const SetAnswers& answers) {
  if (answers.model.scalar_type() != at::kBool || answers.retrained.scalar_type() != at::kBool) {
    fail("tug of war: answers on ", answers.set, " are ", answers.model.scalar_type(), " and ",
         answers.retrained.scalar_type(), ", must be bool");
  }
  if (answers.model.dim() != 1 || answers.model.size(0) < 1) {
    fail("tug of war: answers on ", answers.set, " of shape ", answers.model.sizes(),
         ", must be one for each of at least one example");
  }
  const auto& shape = answers.retrained;
  if (shape.dim() < 1 || shape.dim() > 2 || shape.size(-1) != answers.model.size(0) ||
      shape.size(0) < 1) {
    fail("tug of war: answers of retrained models on ", answers.set, " of shape ", shape.sizes(),
         ", must be ", answers.model.size(0), " for each model");
  }
}

SetPull pull_of(const SetAnswers& answers, double z) {
  check_answers(answers);
  const at::Tensor retrained = at::atleast_2d(answers.retrained).to(at::kLong);
  const auto models = static_cast<double>(retrained.size(0));
  const auto examples = static_cast<double>(answers.model.size(0));
  const at::Tensor own = answers.model.to(at::kLong);
  // K·d in whole numbers: their sums do not round, so the order cannot matter.
  const at::Tensor differences = own * retrained.size(0) - retrained.sum(0);
  const auto whole = [](const at::Tensor& sum) {
    return static_cast<double>(sum.item<std::int64_t>());
  };
  const double sum = whole(differences.sum()) / models;
  const double squares = whole(differences.square().sum()) / (models * models);
  const double mean = sum / (examples + 2);
  const double half =
      z * std::sqrt(((squares + 1) / (examples + 2) - mean * mean) / (examples + 2));
  return {.set = answers.set,
          .accuracy = whole(own.sum()) / examples,
          .retrained_accuracy = whole(retrained.sum()) / (models * examples),
          .difference = {.low = std::max(mean - half, -1.0),
                         .high = std::min(mean + half, 1.0),
                         .method = "Agresti and Min, paired"}};
}

// The distances from 0 that an interval holds.
double smallest_distance(const Interval& interval) {
  return std::max({interval.low, -interval.high, 0.0});
}
double largest_distance(const Interval& interval) {
  return std::max(-interval.low, interval.high);
}

}  // namespace

double tug_of_war(const std::vector<std::pair<double, double>>& accuracies) {
  if (accuracies.empty()) fail("tug of war: there are no sets");
  std::vector<double> factors;
  for (const auto& [accuracy, retrained] : accuracies) {
    for (const double value : {accuracy, retrained}) {
      if (!(value >= 0 && value <= 1)) fail("accuracy: ", value, ", must be in [0, 1]");
    }
    factors.push_back(1 - std::abs(accuracy - retrained));
  }
  std::sort(factors.begin(), factors.end());  // rounding must not depend on the order of sets
  double product = 1;
  for (const double factor : factors) product *= factor;
  return product;
}

TugOfWar tug_of_war(const std::vector<SetAnswers>& answers, double confidence) {
  if (!(confidence > 0 && confidence < 1)) {
    fail("confidence: ", confidence, ", must be between 0 and 1");
  }
  if (answers.empty()) fail("tug of war: there are no sets");
  const double z =
      normal_quantile(1 - (1 - confidence) / (2 * static_cast<double>(answers.size())));
  TugOfWar result;
  std::vector<std::pair<double, double>> accuracies, nearest, farthest;
  for (const SetAnswers& set : answers) {
    result.sets.push_back(pull_of(set, z));
    const SetPull& pull = result.sets.back();
    accuracies.emplace_back(pull.accuracy, pull.retrained_accuracy);
    nearest.emplace_back(smallest_distance(pull.difference), 0);
    farthest.emplace_back(largest_distance(pull.difference), 0);
  }
  result.value = tug_of_war(accuracies);
  result.interval = {
      .low = tug_of_war(farthest),
      .high = tug_of_war(nearest),
      .method = text("Agresti and Min's paired interval on each set, jointly at least ",
                     100 * confidence, " %, over examples for the given models")};
  return result;
}

Readout tug_of_war_readout(const TugOfWar& result) {
  std::string sets;
  for (const SetPull& pull : result.sets) sets += (sets.empty() ? "" : ", ") + pull.set;
  return {.name = "tug of war",
          .unit = "share",
          .definition = "product over " + sets +
                        " of 1 − |accuracy − accuracy of the retrained model|: 1 if all agree",
          .direction = ReadoutDirection::large,
          .value = result.value,
          .interval = result.interval};
}

}  // namespace pumice
