#include "pumice/evaluation/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

Interval interval(double low, double high) {
  return {.low = low, .high = high, .method = "made up"};
}

const std::vector<double> references{0.28, 0.36, 0.32};  // band 0.20 … 0.44

TEST(Verdict, TheBandIsTheReferencesRangeWidenedByItsWidthOnEachSide) {
  const auto band = reference_band(references, 0.01);
  ASSERT_TRUE(band);
  EXPECT_NEAR(band->low, 0.20, 1e-12);
  EXPECT_NEAR(band->high, 0.44, 1e-12);
  const auto narrow = reference_band({0.5, 0.5}, 0.04);
  ASSERT_TRUE(narrow);
  EXPECT_NEAR(narrow->low, 0.46, 1e-12);
  EXPECT_NEAR(narrow->high, 0.54, 1e-12);
}

TEST(Verdict, NothingIsKnownFromFewerThanTwoReferencesOrInfiniteOnes) {
  EXPECT_FALSE(reference_band({}, 0.1));
  EXPECT_FALSE(reference_band({0.3}, 0.1));
  EXPECT_FALSE(reference_band({0.3, std::numeric_limits<double>::infinity()}, 0.1));
  const Judgement judgement = judge(readout(0.3), {0.3}, 0.1, LeakSide::below);
  EXPECT_EQ(judgement.verdict, Verdict::cannot_tell);
  EXPECT_NE(judgement.because.find("there is one"), std::string::npos) << judgement.because;
}

TEST(Verdict, ValuesInsideTheBandAreLikeRetrainedAndOthersFallOnOneOfTwoSides) {
  const auto verdict = [&](double value, LeakSide side) {
    return judge(readout(value, interval(value - 0.01, value + 0.01)), references, 0.01, side)
        .verdict;
  };
  EXPECT_EQ(verdict(0.43, LeakSide::below), Verdict::like_retrained);
  EXPECT_EQ(verdict(0.10, LeakSide::below), Verdict::leaks);
  EXPECT_EQ(verdict(0.60, LeakSide::below), Verdict::over_forgotten);
  EXPECT_EQ(verdict(0.60, LeakSide::above), Verdict::leaks);
  EXPECT_EQ(verdict(0.10, LeakSide::above), Verdict::over_forgotten);
}

TEST(Verdict, AnIntervalThatReachesIntoTheBandCannotTell) {
  const Readout wide = readout(0.1, interval(0, 0.25));
  EXPECT_EQ(judge(wide, references, 0.01, LeakSide::below).verdict, Verdict::cannot_tell);
  // Without an interval the references' own width stands for one: 0.1 ± 0.08 ends at 0.18.
  EXPECT_EQ(judge(readout(0.10), references, 0.01, LeakSide::below).verdict, Verdict::leaks);
  EXPECT_EQ(judge(readout(0.13), references, 0.01, LeakSide::below).verdict, Verdict::cannot_tell);
}

TEST(Verdict, ReadoutsWithAGoodSideAreBadOnTheOtherAlone) {
  const auto verdict = [&](double value, ReadoutDirection direction) {
    return judge(readout(value, interval(value, value), direction), references, 0.01,
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
  const Judgement judgement = judge(infinite, references, 0.01, LeakSide::above);
  EXPECT_EQ(judgement.verdict, Verdict::cannot_tell);
  EXPECT_EQ(judgement.because, "no noise");
}

TEST(Verdict, OneLeakOutweighsEverythingElseInTheOverallLine) {
  const OverallVerdict leaking = overall({{"a", Verdict::like_retrained},
                                          {"b", Verdict::over_forgotten},
                                          {"c", Verdict::leaks},
                                          {"d", Verdict::cannot_tell}});
  EXPECT_EQ(leaking.verdict, Verdict::leaks);
  EXPECT_EQ(leaking.sentence,
            "1 of 4 readouts like retrained; 1 leaking (c); 1 over-forgotten (b); 1 cannot be "
            "judged (d)");
  EXPECT_EQ(overall({{"a", Verdict::like_retrained}, {"b", Verdict::cannot_tell}}).verdict,
            Verdict::like_retrained);
  EXPECT_EQ(overall({{"a", Verdict::cannot_tell}}).verdict, Verdict::cannot_tell);
  EXPECT_EQ(overall({}).verdict, Verdict::cannot_tell);
}

}  // namespace
}  // namespace pumice
