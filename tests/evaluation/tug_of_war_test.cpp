#include "pumice/evaluation/tug_of_war.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "evaluation/made_shadows.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::random_order;
using testing::refusal;

at::Tensor answers(std::initializer_list<int> values) {
  return at::tensor(std::vector<std::int64_t>(values.begin(), values.end()), at::kLong)
      .to(at::kBool);
}

at::Tensor random_answers(at::IntArrayRef shape, double accuracy) {
  return torch::rand(shape, at::kDouble).lt(accuracy);
}

TEST(TugOfWar, TheProductIsAsWorkedOutByHand) {
  EXPECT_NEAR(tug_of_war({{0.9, 0.7}, {0.95, 1.0}, {0.6, 0.65}}), 0.8 * 0.95 * 0.95, 1e-15);
  EXPECT_EQ(tug_of_war({{0.3, 0.3}, {1, 1}, {0, 0}}), 1);
  EXPECT_EQ(tug_of_war({{1, 0}, {0.5, 0.5}}), 0);
}

TEST(TugOfWar, AnswersOfSeveralRetrainedModelsAreAveraged) {
  const at::Tensor retrained = at::stack({answers({1, 0, 0, 0}), answers({1, 1, 1, 0})});
  const TugOfWar result = tug_of_war(
      {{"cohort", answers({1, 1, 1, 1}), retrained}, {"test", answers({1, 0}), answers({0, 1})}});
  EXPECT_NEAR(result.sets[0].accuracy, 1, 1e-15);
  EXPECT_NEAR(result.sets[0].retrained_accuracy, 0.5, 1e-15);
  EXPECT_NEAR(result.value, 0.5, 1e-15);
  EXPECT_LE(result.interval.low, 0.5);
  EXPECT_GE(result.interval.high, 0.5);
}

// By the textbook's table of pairs: b right and wrong, c wrong and right, half a count added to
// each of the four cells; difference (b − c)/n, variance (b + c − (b − c)²/n)/n².
TEST(TugOfWar, TheIntervalOfOneSetIsAgrestiAndMins) {
  const TugOfWar result = tug_of_war({{"cohort", answers({1, 1, 1, 1, 1, 1, 0, 0, 1, 1}),
                                       answers({1, 0, 0, 0, 0, 1, 1, 0, 0, 0})}},
                                     0.9);
  const double b = 6.5, c = 1.5, n = 12;
  const double half = 1.6448536269514722 * std::sqrt((b + c - (b - c) * (b - c) / n) / (n * n));
  EXPECT_NEAR(result.sets[0].difference.low, (b - c) / n - half, 1e-12);
  EXPECT_NEAR(result.sets[0].difference.high, (b - c) / n + half, 1e-12);
  EXPECT_NEAR(result.interval.low, 1 - ((b - c) / n + half), 1e-12);
  EXPECT_NEAR(result.interval.high, 1 - ((b - c) / n - half), 1e-12);
}

TEST(TugOfWar, AgreementOnEveryExampleStillLeavesAnInterval) {
  const at::Tensor all = at::ones({25}, at::kBool);
  const TugOfWar result = tug_of_war({{"cohort", all, all}});
  EXPECT_EQ(result.value, 1);
  EXPECT_EQ(result.interval.high, 1);
  EXPECT_LT(result.interval.low, 0.95);
  EXPECT_GT(result.interval.low, 0.85);
}

TEST(TugOfWar, TheIntervalHoldsTheTruth) {
  torch::manual_seed(1);
  // Accuracies of model and retrained model; equal on retain, where |·| has its kink.
  const std::vector<std::pair<double, double>> truth{{0.9, 0.65}, {0.95, 0.95}, {0.7, 0.72}};
  const double value = tug_of_war(truth);
  EXPECT_NEAR(value, 0.75 * 0.98, 1e-15);
  int covered = 0;
  constexpr int repeats = 300;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::vector<SetAnswers> sets;
    for (std::size_t s = 0; s < truth.size(); ++s) {
      const std::int64_t examples = s == 0 ? 25 : 200;
      sets.push_back({"set", random_answers({examples}, truth[s].first),
                      random_answers({examples}, truth[s].second)});
    }
    const TugOfWar result = tug_of_war(sets);
    EXPECT_LE(result.interval.low, result.value);
    EXPECT_GE(result.interval.high, result.value);
    covered += result.interval.low <= value && value <= result.interval.high;
  }
  EXPECT_GE(covered, 0.95 * repeats);
}

TEST(TugOfWar, TheOrderOfExamplesModelsAndSetsChangesNothingToTheBit) {
  torch::manual_seed(2);
  std::vector<SetAnswers> sets;
  for (const char* name : {"cohort", "retain", "test"}) {
    sets.push_back({name, random_answers({37}, 0.7), random_answers({3, 37}, 0.6)});
  }
  const TugOfWar first = tug_of_war(sets);
  std::vector<SetAnswers> mixed;
  for (const std::size_t s : {2, 0, 1}) {
    const at::Tensor examples = random_order(37, s + 1);
    mixed.push_back(
        {sets[s].set, sets[s].model.index_select(0, examples),
         sets[s].retrained.index_select(0, random_order(3, s + 5)).index_select(1, examples)});
  }
  const TugOfWar again = tug_of_war(mixed);
  EXPECT_EQ(again.value, first.value);
  EXPECT_EQ(again.interval.low, first.interval.low);
  EXPECT_EQ(again.interval.high, first.interval.high);
}

TEST(TugOfWar, TheReadoutIsLargeWhenGood) {
  const Readout readout =
      tug_of_war_readout(tug_of_war({{"cohort", answers({1, 0}), answers({1, 0})},
                                     {"retain", answers({1, 1}), answers({1, 1})}}));
  EXPECT_EQ(readout.value, 1);
  EXPECT_EQ(readout.direction, ReadoutDirection::large);
  EXPECT_NE(readout.definition.find("cohort, retain"), std::string::npos);
}

TEST(TugOfWar, AnswersThatDoNotFitAreRefused) {
  const at::Tensor some = answers({1, 0, 1});
  const auto refused = [](const std::vector<SetAnswers>& sets, const char* part) {
    return refusal([&] { tug_of_war(sets); }).find(part) != std::string::npos;
  };
  EXPECT_TRUE(refused({}, "no sets"));
  EXPECT_TRUE(refused({{"test", some, answers({1, 0})}}, "must be 3 for each model"));
  EXPECT_TRUE(refused({{"test", some, at::ones({0, 3}, at::kBool)}}, "must be 3 for each model"));
  EXPECT_TRUE(refused({{"test", answers({}), answers({})}}, "at least one example"));
  EXPECT_TRUE(refused({{"test", some.to(at::kDouble), some}}, "must be bool"));
  EXPECT_NE(refusal([] { tug_of_war({{1.2, 0.5}}); }).find("must be in [0, 1]"), std::string::npos);
}

}  // namespace
}  // namespace pumice
