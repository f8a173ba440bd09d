#include "pumice/evaluation/membership_attack.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "pumice/core/seed.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;

std::vector<double> normal_values(std::int64_t count, double mean, std::int64_t seed) {
  torch::manual_seed(seed);
  const at::Tensor values = torch::randn({count}, at::kDouble) + mean;
  return {values.data_ptr<double>(), values.data_ptr<double>() + count};
}

template <typename Value>
std::vector<Value> shuffled(const std::vector<Value>& values, std::uint64_t seed) {
  std::vector<Value> result;
  for (const std::int64_t i :
       RandomStream(seed, "shuffle").permutation(static_cast<std::int64_t>(values.size()))) {
    result.push_back(values[static_cast<std::size_t>(i)]);
  }
  return result;
}

at::Tensor shuffled_rows(const at::Tensor& rows, std::uint64_t seed) {
  return rows.index_select(
      0, at::tensor(RandomStream(seed, "shuffle").permutation(rows.size(0)), at::kLong));
}

// Logits of three classes whose first stands out by about `lead`.
at::Tensor logits_with_lead(std::int64_t count, double lead, std::int64_t seed) {
  torch::manual_seed(seed);
  at::Tensor logits = torch::randn({count, 3}, at::kDouble);
  logits.select(1, 0) += lead;
  return logits;
}

TEST(MembershipAttack, EntropyGoesFromCertaintyToUniform) {
  const std::vector<double> entropies =
      softmax_entropies(at::tensor({0.0, 0.0, 0.0, 200.0, 0.0, 0.0}, at::kDouble).view({2, 3}));
  EXPECT_NEAR(entropies[0], std::log(3.0), 1e-15);
  EXPECT_NEAR(entropies[1], 0, 1e-15);
  const at::Tensor shares = at::tensor({0.2, 0.5, 0.3}, at::kDouble).view({1, 3});
  EXPECT_NEAR(softmax_entropies(shares.log()).front(),
              -(0.2 * std::log(0.2) + 0.5 * std::log(0.5) + 0.3 * std::log(0.3)), 1e-15);
}

TEST(MembershipAttack, MarginsAreLogOddsOfTheTrueClass) {
  const at::Tensor shares = at::tensor({0.2, 0.5, 0.3, 0.2, 0.5, 0.3}, at::kDouble).view({2, 3});
  const std::vector<double> found = margins(shares.log(), at::tensor({1, 2}, at::kLong));
  EXPECT_NEAR(found[0], std::log(0.5 / 0.5), 1e-14);
  EXPECT_NEAR(found[1], std::log(0.3 / 0.7), 1e-14);
}

// The optimality conditions of min ½|f|² + C Σ slack determine the solution: with a multiplier α_i
// in [0, C] for each example and Σ y_i α_i = 0, y_i f(x_i) is >= 1 where α is 0, 1 between, <= 1 at
// C.
TEST(MembershipAttack, TheClassifierFulfilsTheOptimalityConditionsOfItsProblem) {
  const SupportVectorOptions options{.tolerance = 1e-6};
  ASSERT_EQ(options.cost, 3);
  ASSERT_EQ(options.gamma, 1);
  for (const double distance : {0.0, 0.7, 4.0}) {
    const std::vector<double> members = normal_values(60, 0, 1);
    const std::vector<double> others = normal_values(40, distance, 2);
    const SupportVectorClassifier classifier = train_classifier(members, others, options);
    double balance = 0;
    for (const double coefficient : classifier.coefficients) balance += coefficient;
    EXPECT_NEAR(balance, 0, 1e-9);
    std::size_t used = 0;
    int free = 0, bounded = 0;
    const auto visit = [&](const std::vector<double>& values, double sign) {
      for (const double value : values) {
        double multiplier = 0;
        for (std::size_t i = 0; i < classifier.support.size(); ++i) {
          if (classifier.support[i] == value) multiplier = sign * classifier.coefficients[i];
        }
        used += multiplier != 0;
        double decision = -classifier.offset;
        for (std::size_t i = 0; i < classifier.support.size(); ++i) {
          decision +=
              classifier.coefficients[i] * std::exp(-std::pow(value - classifier.support[i], 2));
        }
        EXPECT_NEAR(decision, classifier.decision(value), 1e-10);
        EXPECT_GE(multiplier, 0);
        EXPECT_LE(multiplier, 3);
        if (multiplier == 0) {
          EXPECT_GE(sign * decision, 1 - 2e-6);
        } else if (multiplier == 3) {
          EXPECT_LE(sign * decision, 1 + 2e-6);
          ++bounded;
        } else {
          EXPECT_NEAR(sign * decision, 1, 2e-6);
          ++free;
        }
      }
    };
    visit(members, 1);
    visit(others, -1);
    EXPECT_EQ(used, classifier.support.size());
    EXPECT_GT(free, 0);
    EXPECT_TRUE(bounded > 0 || distance == 4.0);
  }
}

TEST(MembershipAttack, DecisionsAreThoseOfScikitLearn) {
  std::ifstream file(PUMICE_SOURCE_DIR "/tests/fixtures/svc_reference.json");
  const nlohmann::json reference = nlohmann::json::parse(file);
  const SupportVectorClassifier classifier = train_classifier(
      reference.at("members"), reference.at("others"), {.cost = 3, .gamma = 1, .tolerance = 1e-8});
  int called = 0;
  for (std::size_t i = 0; i < reference.at("queries").size(); ++i) {
    const double decision = classifier.decision(reference.at("queries")[i]);
    EXPECT_NEAR(decision, reference.at("decisions")[i].get<double>(), 1e-5) << i;
    EXPECT_EQ(decision > 0, reference.at("called_members")[i] == 1) << i;
    called += decision > 0;
  }
  EXPECT_GT(called, 3);
  EXPECT_LT(called, 30);
}

TEST(MembershipAttack, TwoPointsOnEachSideHaveTheirClosedForm) {
  // Far apart, equal values: α is shared by the two, f(±) = ±1 with Σα = A on each side and
  // A (1 − k) = 1, k = exp(−d²).
  const SupportVectorClassifier classifier = train_classifier({0, 0}, {1, 1}, {.tolerance = 1e-9});
  EXPECT_NEAR(classifier.decision(0), 1, 1e-6);
  EXPECT_NEAR(classifier.decision(1), -1, 1e-6);
  double sum = 0;
  for (const double coefficient : classifier.coefficients) sum += std::max(coefficient, 0.0);
  EXPECT_NEAR(sum, 1 / (1 - std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(classifier.decision(0.5), 0, 1e-6);
}

TEST(MembershipAttack, SeparableOutputsAreToldApartAndTheCohortGoesWhereItLooksLike) {
  const at::Tensor retain = logits_with_lead(80, 9, 1);
  const at::Tensor test = logits_with_lead(70, 0, 2);
  const EntropyAttack remembered = entropy_attack(logits_with_lead(25, 9, 3), retain, test);
  EXPECT_EQ(remembered.called_members, 25);
  EXPECT_GT(remembered.retain_recognised, 0.95);
  EXPECT_GT(remembered.test_recognised, 0.95);
  const EntropyAttack forgotten = entropy_attack(logits_with_lead(25, 0, 4), retain, test);
  EXPECT_LE(forgotten.called_members, 2);
  const Readout readout = entropy_attack_readout(remembered);
  EXPECT_EQ(readout.value, 1);
  EXPECT_EQ(readout.direction, ReadoutDirection::like_retrained);
  EXPECT_LT(readout.interval->low, 0.9);
}

TEST(MembershipAttack, OutputsOfOneDistributionAreHardlyToldApart) {
  const EntropyAttack attack = entropy_attack(
      logits_with_lead(25, 1, 3), logits_with_lead(300, 1, 1), logits_with_lead(300, 1, 2));
  EXPECT_NEAR(attack.retain_recognised + attack.test_recognised, 1, 0.2);
}

TEST(MembershipAttack, TheOrderOfExamplesChangesNothingToTheBit) {
  const at::Tensor cohort = logits_with_lead(25, 1.5, 3);
  const at::Tensor retain = logits_with_lead(90, 2, 1);
  const at::Tensor test = logits_with_lead(80, 1, 2);
  const EntropyAttack first = entropy_attack(cohort, retain, test);
  for (const std::uint64_t seed : {1, 2}) {
    const EntropyAttack again = entropy_attack(
        shuffled_rows(cohort, seed), shuffled_rows(retain, seed), shuffled_rows(test, seed));
    EXPECT_EQ(again.called_members, first.called_members);
    EXPECT_EQ(again.classifier.support, first.classifier.support);
    EXPECT_EQ(again.classifier.coefficients, first.classifier.coefficients);
    EXPECT_EQ(again.classifier.offset, first.classifier.offset);
  }
}

TEST(MembershipAttack, TheSolverSaysNothingOnItsOwn) {
  ::testing::internal::CaptureStdout();
  train_classifier(normal_values(20, 0, 1), normal_values(20, 1, 2));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(MembershipAttack, TooFewOrBrokenExamplesAreRefusedWithWhatIsNeeded) {
  const at::Tensor some = logits_with_lead(5, 1, 1);
  EXPECT_NE(refusal([&] {
              entropy_attack(some, some, some.narrow(0, 0, 1));
            }).find("1 test examples, the classifier needs at least 2"),
            std::string::npos);
  EXPECT_NE(refusal([&] { entropy_attack(some.narrow(0, 0, 0), some, some); }).find("empty"),
            std::string::npos);
  at::Tensor broken = some.clone();
  broken[2][1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal([&] { entropy_attack(some, broken, some); }).find("not finite"),
            std::string::npos);
  EXPECT_NE(refusal([&] { entropy_attack(broken, some, some); }).find("not finite"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              train_classifier({1, 2}, {1, 2}, {.cost = 0});
            }).find("must be > 0"),
            std::string::npos);
}

TEST(ThresholdAttack, TheAreaIsTheShareOfPairsInTheRightOrder) {
  std::vector<double> members = normal_values(37, 0.5, 1);
  std::vector<double> others = normal_values(53, 0, 2);
  // Rounded to halves, so that there are many ties within and between the two.
  for (double& value : members) value = std::round(2 * value) / 2;
  for (double& value : others) value = std::round(2 * value) / 2;
  double pairs = 0;
  for (const double member : members) {
    for (const double other : others) pairs += member > other ? 1 : member == other ? 0.5 : 0;
  }
  const ThresholdAttack attack = threshold_attack(members, others);
  EXPECT_NEAR(attack.area, pairs / (37 * 53), 1e-14);
  double trapezia = 0;
  for (std::size_t i = 1; i < attack.curve.size(); ++i) {
    trapezia += (attack.curve[i].false_positive_rate - attack.curve[i - 1].false_positive_rate) *
                (attack.curve[i].true_positive_rate + attack.curve[i - 1].true_positive_rate) / 2;
  }
  EXPECT_NEAR(attack.area, trapezia, 1e-14);
}

TEST(ThresholdAttack, EveryPointOfTheCurveIsWhatItsThresholdCallsMembers) {
  const std::vector<double> members = normal_values(30, 1, 3);
  const std::vector<double> others = normal_values(40, 0, 4);
  const ThresholdAttack attack = threshold_attack(members, others);
  ASSERT_EQ(attack.curve.size(), 71u);
  EXPECT_EQ(attack.curve.back().false_positive_rate, 1);
  EXPECT_EQ(attack.curve.back().true_positive_rate, 1);
  for (const RocPoint& point : attack.curve) {
    const auto share = [&](const std::vector<double>& scores) {
      return static_cast<double>(
                 std::count_if(scores.begin(), scores.end(),
                               [&](double score) { return score >= point.threshold; })) /
             static_cast<double>(scores.size());
    };
    EXPECT_EQ(point.true_positive_rate, share(members));
    EXPECT_EQ(point.false_positive_rate, share(others));
  }
}

TEST(ThresholdAttack, SeparableScoresGiveOneAndEqualScoresAHalf) {
  const ThresholdAttack apart = threshold_attack({3, 4, 5}, {0, 1, 2});
  EXPECT_EQ(apart.area, 1);
  EXPECT_EQ(apart.true_positive_rate_at(0.01), 1);
  EXPECT_EQ(threshold_attack({0, 1, 2}, {3, 4, 5}).area, 0);
  const ThresholdAttack same = threshold_attack({1, 2, 3}, {1, 2, 3});
  EXPECT_EQ(same.area, 0.5);
  EXPECT_EQ(same.true_positive_rate_at(0.01), 0);
}

TEST(ThresholdAttack, OnePercentOfTwoHundredIsTwo) {
  std::vector<double> others(200);
  for (std::size_t i = 0; i < others.size(); ++i) others[i] = static_cast<double>(i);
  // 198 and 199 may be called members; 197 may not.
  const ThresholdAttack attack = threshold_attack({500, 198.5, 197.5, 196.5, 0.5}, others);
  EXPECT_NEAR(attack.true_positive_rate_at(0.01), 0.6, 1e-15);
  EXPECT_NEAR(attack.true_positive_rate_at(0.0149), 0.6, 1e-15);
  EXPECT_NEAR(attack.true_positive_rate_at(0.015), 0.8, 1e-15);
}

TEST(ThresholdAttack, TheOrderOfScoresChangesNothing) {
  const std::vector<double> members = normal_values(30, 1, 3);
  const std::vector<double> others = normal_values(40, 0, 4);
  const ThresholdAttack first = threshold_attack(members, others);
  const ThresholdAttack again = threshold_attack(shuffled(members, 5), shuffled(others, 6));
  EXPECT_EQ(first.area, again.area);
  EXPECT_EQ(first.true_positive_rate_at(0.05), again.true_positive_rate_at(0.05));
}

TEST(ThresholdAttack, TheAreasIntervalEndsWhereTheAreaIsJustRejectedAndCoversTheTruth) {
  const Interval certain = area_interval(1, 25, 100);
  EXPECT_EQ(certain.high, 1);
  EXPECT_LT(certain.low, 0.98);
  EXPECT_GT(certain.low, 0.8);
  const Interval never = area_interval(0, 25, 100);
  EXPECT_EQ(never.low, 0);
  EXPECT_NEAR(never.high, 1 - certain.low, 1e-12);
  // Hanley and McNeil's variance, with both counts replaced by their mean.
  const Interval middle = area_interval(0.7, 40, 40, 0.9);
  for (const double theta : {middle.low, middle.high}) {
    const double q1 = theta / (2 - theta), q2 = 2 * theta * theta / (1 + theta);
    const double variance =
        (theta * (1 - theta) + 39 * (q1 - theta * theta) + 39 * (q2 - theta * theta)) / 1600;
    EXPECT_NEAR(std::abs(0.7 - theta) / std::sqrt(variance), normal_quantile(0.95), 1e-6);
  }
  // N(1, 1) against N(0, 1): the true area is Φ(1/√2).
  const double truth = 0.5 * std::erfc(-0.5);
  int covered = 0;
  for (std::int64_t seed = 1; seed <= 200; ++seed) {
    const double area =
        threshold_attack(normal_values(25, 1, seed), normal_values(60, 0, 1000 + seed)).area;
    const Interval interval = area_interval(area, 25, 60);
    covered += interval.low <= truth && truth <= interval.high;
  }
  EXPECT_GE(covered, 182);
}

TEST(ThresholdAttack, ReadoutsCarryBothNumbersWithIntervals) {
  const std::vector<Readout> readouts = threshold_attack_readouts(
      threshold_attack(normal_values(30, 1, 3), normal_values(200, 0, 4)));
  ASSERT_EQ(readouts.size(), 2u);
  for (const Readout& readout : readouts) {
    EXPECT_LE(readout.interval->low, readout.value) << readout.name;
    EXPECT_GE(readout.interval->high, readout.value) << readout.name;
  }
  EXPECT_NE(refusal([] { threshold_attack({}, {1}); }).find("at least one of each"),
            std::string::npos);
  EXPECT_NE(refusal([] { threshold_attack({std::nan("")}, {1}); }).find("not a number"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
