#include "pumice/report/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "refusal.h"

namespace pumice::report {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Spread spread(std::initializer_list<double> values) {
  Spread result;
  for (const double value : values) result.add(value);
  return result;
}

TEST(NumberText, GivesThreeDigitsAndNoMore) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(0.32), "0.32");
  EXPECT_EQ(number_text(1.0 / 3), "0.333");
  EXPECT_EQ(number_text(1449.6), "1450");
  EXPECT_EQ(number_text(-2.5), "-2.5");
  EXPECT_EQ(number_text(2.1e-9), "2.1e-9");
  EXPECT_EQ(number_text(3e7), "3e7");
  EXPECT_EQ(number_text(0.32, "share"), "32 %");
  EXPECT_EQ(number_text(infinity, "share"), "infinite");
}

TEST(NumberText, WordsOfRecordsAreNumbersAndOthersAreRefused) {
  EXPECT_EQ(number_of("infinite"), infinity);
  EXPECT_EQ(number_of("-infinite"), -infinity);
  EXPECT_TRUE(std::isnan(number_of("undefined")));
  EXPECT_EQ(json_of(infinity), "infinite");
  EXPECT_EQ(testing::refusal([] { number_of("many"); }),
            "\"many\", must be a number or \"infinite\"");
}

TEST(Spread, HasTheSampleStandardDeviation) {
  const Spread three = spread({1, 2, 3});
  EXPECT_DOUBLE_EQ(*three.mean(), 2);
  EXPECT_DOUBLE_EQ(*three.deviation(), 1);
  EXPECT_FALSE(spread({1}).deviation());
  EXPECT_FALSE(spread({}).mean());
}

TEST(Spread, DigitsFollowTheDeviation) {
  EXPECT_EQ(spread_text(spread({0.28, 0.32, 0.36}), "share"), "32 ± 4 %");
  EXPECT_EQ(spread_text(spread({0.111, 0.113, 0.127})), "0.117 ± 0.009");
  EXPECT_EQ(spread_text(spread({41, 41, 41})), "41 ± 0");
  EXPECT_EQ(spread_text(spread({0.2, 0.2, 0.2}), "share"), "20 ± 0 %");
  EXPECT_EQ(spread_text(spread({41})), "41");
  EXPECT_EQ(spread_text(spread({})), "–");
}

TEST(Spread, InfiniteRunsAreCountedAndCensoredOnesAreLimits) {
  EXPECT_EQ(spread_text(spread({infinity, infinity})), "infinite");
  EXPECT_EQ(spread_text(spread({12, infinity})), "infinite in 1 of 2 runs, else 12");
  Spread censored = spread({62, 60});
  censored.censored = true;
  EXPECT_EQ(spread_text(censored), "≥ 61.0 ± 1.4");
}

}  // namespace
}  // namespace pumice::report
