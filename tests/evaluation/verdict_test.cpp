#include "pumice/evaluation/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace pumice {
namespace {

Readout readout(double value, std::optional<Interval> interval = {},
                ReadoutDirection direction = ReadoutDirection::like_retrained) {
  return {.name = "number",
          .unit = "share",
          .definition = "a number",
          .direction = direction,
          .value = value,
          .interval = interval};
}

bool outside_of_chance(const Judgement& judgement) {
  return judgement.verdict == Verdict::leaks || judgement.verdict == Verdict::over_forgotten;
}

Interval interval(double low, double high) {
  return {.low = low, .high = high, .method = "made up"};
}

// Like them: 0.20 … 0.44. Mean 0.32, standard deviation 0.04: by chance in
// 0.32 ± 4.3027 · 0.04 · √(4/3), 0.1213 … 0.5187.
const std::vector<double> references{0.28, 0.36, 0.32};
const Yardstick in_steps{.resolution = 0.01};

TEST(Verdict, LikeRetrainedIsTheRangeWidenedByItselfAndChanceStudentsPredictionInterval) {
  const auto band = reference_band(references, in_steps);
  ASSERT_TRUE(band);
  EXPECT_NEAR(band->low, 0.20, 1e-12);
  EXPECT_NEAR(band->high, 0.44, 1e-12);
  EXPECT_NEAR(band->least, 0.1213, 1e-4);
  EXPECT_NEAR(band->most, 0.5187, 1e-4);
  const auto narrow = reference_band({0.5, 0.5, 0.5}, {.resolution = 0.04});
  ASSERT_TRUE(narrow);
  for (const double low : {narrow->low, narrow->least}) EXPECT_NEAR(low, 0.46, 1e-12);
  for (const double high : {narrow->high, narrow->most}) EXPECT_NEAR(high, 0.54, 1e-12);
}

TEST(Verdict, ChanceMovesWhatIsPositiveByRatios) {
  // Logarithms log(10), log(20), log(40): mean log(20), deviation log(2).
  const auto band = reference_band({10, 20, 40}, {.scale = Scale::multiplicative});
  ASSERT_TRUE(band);
  const double factor = std::exp(4.302653 * std::log(2) * std::sqrt(4.0 / 3));
  EXPECT_NEAR(band->most / 20, factor, 1e-4 * factor);
  EXPECT_LE(band->least, band->low);  // −20
  // Zeros are values.
  const auto zeros =
      reference_band({0, 0, 0}, {.resolution = 0.01, .scale = Scale::multiplicative});
  ASSERT_TRUE(zeros);
  EXPECT_NEAR(zeros->high, 0.01, 1e-12);
  EXPECT_TRUE(std::isfinite(zeros->most));
}

TEST(Verdict, ComparisonsWithEachOtherUnderstateHowMuchANewOneDiffers) {
  const auto own = reference_band({1.0, 1.4, 1.2}, {});
  const auto compared = reference_band({1.0, 1.4, 1.2}, {.compares = true});
  ASSERT_TRUE(own && compared);
  EXPECT_EQ(compared->high, own->high);
  EXPECT_NEAR(compared->most - 1.2, 2 * (own->most - 1.2), 1e-9);  // (k−1)/(k−2) for k = 3
  // A quarter of the mean at the least; up to four times a single pair's distance by chance.
  EXPECT_NEAR(reference_band({1.0, 1.0, 1.0}, {.compares = true})->high, 1.25, 1e-9);
  const Yardstick of_pair{.scale = Scale::multiplicative, .compares = true};
  EXPECT_NEAR(reference_band({0.3, 0.3}, of_pair)->high, 0.375, 1e-9);
  EXPECT_NEAR(reference_band({0.3, 0.3}, of_pair)->most, 1.2, 1e-9);
  EXPECT_NEAR(reference_band({0.3, 0.3}, of_pair)->least, 0.075, 1e-9);
}

TEST(Verdict, SharesThatAreOneAtBestAreJudgedByWhatIsMissing) {
  const std::vector<double> shares{0.94, 0.96, 0.95};
  const Yardstick missing{.resolution = 0.01, .scale = Scale::shortfall, .compares = true};
  const auto band = reference_band(shares, missing);
  ASSERT_TRUE(band);
  EXPECT_NEAR(band->low, 0.92, 1e-12);
  EXPECT_NEAR(band->high, 0.98, 1e-12);
  // 4.3027 · 0.01 · √(4/3), twice as much for comparisons
  EXPECT_NEAR(band->least, 0.95 - 0.09937, 1e-4);
  EXPECT_EQ(band->most, 1);  // a share stays one, whatever chance may do
  const auto judged = [&](double value) {
    return judge(readout(value, {}, ReadoutDirection::large), shares, missing, LeakSide::below);
  };
  EXPECT_EQ(judged(1).verdict, Verdict::like_retrained);  // better
  EXPECT_EQ(judged(0.88).verdict, Verdict::cannot_tell);
  EXPECT_EQ(judged(0.80).verdict, Verdict::leaks);
  EXPECT_FALSE(judged(0.80).alone);
  EXPECT_TRUE(judged(0.60).alone);
  // A quarter of what is missing, not of the shares; of a pair up to four times as much by chance.
  EXPECT_NEAR(reference_band({0.80, 0.80, 0.80}, missing)->low, 0.75, 1e-12);
  EXPECT_NEAR(reference_band({0.90, 0.90}, missing)->least, 0.60, 1e-12);
  EXPECT_FALSE(judge(readout(0.93), {0.95, 0.95, 0.95}, missing, LeakSide::below).alone);
}

// Normal values: 95 % of them have to lie where chance puts them by others of their kind, and where
// values are distances of such, nearly so. (At least: like retrained is never worse than chance.)
TEST(Verdict, OneRetrainedModelInTwentyIsOutsideWhatChanceDoesToTheOthers) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  constexpr int draws = 4000;
  for (const int k : {2, 3, 5}) {
    int outside = 0, far_away = 0;
    for (int draw = 0; draw < draws; ++draw) {
      std::vector<double> values;
      for (int i = 0; i < k; ++i) values.push_back(normal(random));
      const Judgement judgement = judge(readout(normal(random)), values, {}, LeakSide::above);
      outside += outside_of_chance(judgement);
      far_away += judgement.alone;
    }
    // Of five or more, the range widened by itself often reaches further than chance does.
    const double least = k == 5 ? 0 : 0.0375;
    EXPECT_GT(outside / double{draws}, least) << k;
    EXPECT_LT(outside / double{draws}, 0.0625) << k;   // 3.6 standard errors
    EXPECT_LT(far_away / double{draws}, 0.0095) << k;  // 4 standard errors
    EXPECT_GT(outside, far_away) << k;
  }
}

TEST(Verdict, DistancesBetweenRetrainedModelsAreRarelyOutsideEither) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  constexpr int draws = 3000;
  for (const int k : {3, 5}) {
    int outside = 0;
    for (int draw = 0; draw < draws; ++draw) {
      // log-distance of models i and j: a_i + a_j, how unusual each is
      std::vector<double> a;
      for (int i = 0; i <= k; ++i) a.push_back(0.3 * normal(random));
      const auto mean_distance = [&](int model) {
        double sum = 0;
        for (int i = 0; i < k; ++i) sum += i == model ? 0 : std::exp(a[model] + a[i]);
        return sum / (model < k ? k - 1 : k);
      };
      std::vector<double> values;
      for (int i = 0; i < k; ++i) values.push_back(mean_distance(i));
      const Judgement judgement =
          judge(readout(mean_distance(k)), values,
                {.scale = Scale::multiplicative, .compares = true}, LeakSide::above);
      outside += outside_of_chance(judgement);
    }
    EXPECT_LT(outside / double{draws}, 0.07) << k;
    EXPECT_GT(outside, 0) << k;
  }
}

TEST(Verdict, NothingIsKnownFromFewerThanTwoReferencesOrInfiniteOnes) {
  EXPECT_FALSE(reference_band({}, in_steps));
  EXPECT_FALSE(reference_band({0.3}, in_steps));
  EXPECT_FALSE(reference_band({0.3, std::numeric_limits<double>::infinity()}, in_steps));
  const Judgement judgement = judge(readout(0.3), {0.3}, in_steps, LeakSide::below);
  EXPECT_EQ(judgement.verdict, Verdict::cannot_tell);
  EXPECT_NE(judgement.because.find("there is one"), std::string::npos) << judgement.because;
}

TEST(Verdict, ValuesInsideTheBandAreLikeRetrainedAndOthersFallOnOneOfTwoSides) {
  const auto verdict = [&](double value, LeakSide side) {
    return judge(readout(value, interval(value - 0.01, value + 0.01)), references, in_steps, side)
        .verdict;
  };
  EXPECT_EQ(verdict(0.43, LeakSide::below), Verdict::like_retrained);
  EXPECT_EQ(verdict(0.50, LeakSide::below), Verdict::cannot_tell);  // chance
  EXPECT_EQ(verdict(0.15, LeakSide::below), Verdict::cannot_tell);
  EXPECT_EQ(verdict(0.10, LeakSide::below), Verdict::leaks);
  EXPECT_EQ(verdict(0.60, LeakSide::below), Verdict::over_forgotten);
  EXPECT_EQ(verdict(0.60, LeakSide::above), Verdict::leaks);
  EXPECT_EQ(verdict(0.10, LeakSide::above), Verdict::over_forgotten);
}

TEST(Verdict, AnIntervalThatReachesToWhatChanceDoesCannotTell) {
  const Readout wide = readout(0.1, interval(0, 0.25));
  EXPECT_EQ(judge(wide, references, in_steps, LeakSide::below).verdict, Verdict::cannot_tell);
  EXPECT_EQ(judge(readout(0.1), references, in_steps, LeakSide::below).verdict, Verdict::leaks);
}

TEST(Verdict, ReadoutsWithAGoodSideAreBadOnTheOtherAlone) {
  const auto verdict = [&](double value, ReadoutDirection direction) {
    return judge(readout(value, interval(value, value), direction), references, in_steps,
                 LeakSide::above)
        .verdict;
  };
  EXPECT_EQ(verdict(0.01, ReadoutDirection::small), Verdict::like_retrained);
  EXPECT_EQ(verdict(0.90, ReadoutDirection::small), Verdict::leaks);
  EXPECT_EQ(verdict(0.90, ReadoutDirection::large), Verdict::like_retrained);
  EXPECT_EQ(verdict(0.01, ReadoutDirection::large), Verdict::over_forgotten);
}

TEST(Verdict, WhatIsNotFiniteCannotBeJudgedAndSaysWhy) {
  Readout infinite = readout(std::numeric_limits<double>::infinity());
  infinite.reason = "no noise";
  const Judgement judgement = judge(infinite, references, in_steps, LeakSide::above);
  EXPECT_EQ(judgement.verdict, Verdict::cannot_tell);
  EXPECT_EQ(judgement.because, "no noise");
}

TEST(Verdict, TwoGroupsOrOneClearReadoutDecideTheOverallLine) {
  const auto with = [](Verdict verdict, bool alone = false) {
    return Judgement{.verdict = verdict, .alone = alone};
  };
  const NamedJudgement like{"a", "errors", with(Verdict::like_retrained)};
  const NamedJudgement over{"b", "attack", with(Verdict::over_forgotten)};
  const NamedJudgement leak{"c", "bounds", with(Verdict::leaks)};
  const NamedJudgement same_group{"d", "bounds", with(Verdict::leaks)};
  const NamedJudgement second_group{"e", "relearn", with(Verdict::leaks)};
  const NamedJudgement clear{"f", "bounds", with(Verdict::leaks, true)};
  const NamedJudgement unknown{"g", "split", with(Verdict::cannot_tell)};

  const OverallVerdict leaking = overall({like, over, leak, second_group, unknown});
  EXPECT_EQ(leaking.verdict, Verdict::leaks);
  EXPECT_EQ(leaking.sentence,
            "1 of 5 readouts like retrained; 2 leaking (c, e); 1 over-forgotten (b); 1 cannot be "
            "judged (g)");
  EXPECT_EQ(overall({like, over, clear}).verdict, Verdict::leaks);
  const OverallVerdict chance = overall({like, leak, same_group});
  EXPECT_EQ(chance.verdict, Verdict::cannot_tell);
  EXPECT_EQ(chance.sentence,
            "1 of 3 readouts like retrained; 2 leaking (c, d); what is outside may be chance, more "
            "retrained models tell");
  EXPECT_EQ(overall({leak, same_group, unknown}).verdict, Verdict::leaks);  // no other was judged
  EXPECT_EQ(overall({over}).verdict, Verdict::over_forgotten);
  EXPECT_EQ(overall({like, unknown}).verdict, Verdict::like_retrained);
  EXPECT_EQ(overall({like, unknown, unknown}).verdict, Verdict::cannot_tell);
  EXPECT_EQ(overall({unknown}).verdict, Verdict::cannot_tell);
  EXPECT_EQ(overall({}).verdict, Verdict::cannot_tell);
}

}  // namespace
}  // namespace pumice
