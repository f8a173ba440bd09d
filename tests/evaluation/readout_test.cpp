#include "pumice/evaluation/readout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "pumice/core/seed.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Readout, WilsonsIntervalHasThePublishedValues) {
  // Newcombe (1998), table I, score method without correction.
  const Interval some = wilson_interval(81, 263);
  EXPECT_NEAR(some.low, 0.2553, 5e-5);
  EXPECT_NEAR(some.high, 0.3662, 5e-5);
  const Interval few = wilson_interval(15, 148);
  EXPECT_NEAR(few.low, 0.0624, 5e-5);
  EXPECT_NEAR(few.high, 0.1605, 5e-5);
  const Interval none = wilson_interval(0, 20);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.1611, 5e-5);
  const Interval all = wilson_interval(29, 29);
  EXPECT_NEAR(all.low, 0.8830, 5e-5);
  EXPECT_EQ(all.high, 1);
}

TEST(Readout, EndsOfWilsonsIntervalAreWhereTheShareIsJustRejected) {
  for (const std::int64_t successes : {1, 7, 24}) {
    const Interval interval = wilson_interval(successes, 25, 0.9);
    const double share = static_cast<double>(successes) / 25;
    for (const double end : {interval.low, interval.high}) {
      EXPECT_NEAR(std::abs(share - end) / std::sqrt(end * (1 - end) / 25), normal_quantile(0.95),
                  1e-9);
    }
  }
}

TEST(Readout, StudentsQuantilesHaveTheirTabulatedValues) {
  EXPECT_NEAR(student_quantile(0.975, 2), 4.302653, 5e-7);
  EXPECT_NEAR(student_quantile(0.975, 7), 2.364624, 5e-7);
  EXPECT_NEAR(student_quantile(0.95, 10), 1.812461, 5e-7);
  EXPECT_NEAR(student_quantile(0.995, 31), 2.744042, 5e-7);
  // One degree of freedom is Cauchy's distribution, many are the normal one.
  EXPECT_NEAR(student_quantile(0.9, 1), std::tan(0.4 * std::acos(-1.0)), 1e-12);
  EXPECT_NEAR(student_quantile(0.975, 1000000), normal_quantile(0.975), 1e-5);
  EXPECT_EQ(student_quantile(0.5, 5), 0);
  EXPECT_EQ(student_quantile(0.1, 5), -student_quantile(0.9, 5));
}

TEST(Readout, SharesThatCannotBeAreRefused) {
  EXPECT_NE(refusal([] { wilson_interval(0, 0); }).find("at least one"), std::string::npos);
  EXPECT_NE(refusal([] { wilson_interval(6, 5); }).find("must be in 0 … 5"), std::string::npos);
  EXPECT_NE(refusal([] { wilson_interval(1, 5, 1); }).find("between 0 and 1"), std::string::npos);
  EXPECT_NE(refusal([] {
              bootstrap_interval({1, 2}, {.resamples = 1});
            }).find("must be >= 2"),
            std::string::npos);
}

std::vector<double> some_values(std::uint64_t seed, std::size_t count) {
  RandomStream stream(seed, "values");
  std::vector<double> values(count);
  for (double& value : values) {
    value = 0;  // a sum of twelve: nearly normal, mean 0, variance 1
    for (int i = 0; i < 12; ++i) value += static_cast<double>(stream.below(1 << 20)) / (1 << 20);
    value -= 6;
  }
  return values;
}

TEST(Readout, TheBootstrapOfManyNormalValuesIsTheNormalInterval) {
  const std::vector<double> values = some_values(1, 400);
  double mean = 0, square = 0;
  for (const double value : values) mean += value / 400;
  for (const double value : values) square += (value - mean) * (value - mean) / 400;
  const auto interval = bootstrap_interval(values, {.confidence = 0.9, .resamples = 4000});
  ASSERT_TRUE(interval);
  const double half = normal_quantile(0.95) * std::sqrt(square / 400);
  EXPECT_NEAR(interval->low, mean - half, 0.1 * half);
  EXPECT_NEAR(interval->high, mean + half, 0.1 * half);
}

TEST(Readout, TheBootstrapCoversTheTrueMeanAboutAsOftenAsItSays) {
  int covered = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto interval =
        bootstrap_interval(some_values(seed, 50), {.confidence = 0.8, .resamples = 300});
    covered += interval->low <= 0 && 0 <= interval->high;
  }
  EXPECT_NEAR(covered, 160, 20);
}

TEST(Readout, TheBootstrapDependsOnTheSeedAndNotOnTheOrder) {
  std::vector<double> values = some_values(3, 30);
  const auto interval = bootstrap_interval(values);
  std::reverse(values.begin(), values.end());
  const auto reversed = bootstrap_interval(values);
  EXPECT_EQ(interval->low, reversed->low);
  EXPECT_EQ(interval->high, reversed->high);
  EXPECT_NE(interval->low, bootstrap_interval(values, {.seed = 2})->low);
  const auto mean = [&] {
    return mean_readout("m", "u", "d", ReadoutDirection::small, values).value;
  };
  const double before = mean();
  std::sort(values.begin(), values.end());
  EXPECT_EQ(before, mean());
}

TEST(Readout, OneValueOrAnInfiniteOneHasNoInterval) {
  EXPECT_FALSE(bootstrap_interval({1.0}));
  EXPECT_FALSE(bootstrap_interval({1.0, infinity, 2.0}));
  EXPECT_TRUE(bootstrap_interval({1.0, 2.0}));
}

TEST(Readout, JsonHoldsAllThatIsNeededToReadTheNumber) {
  const Readout readout =
      share_readout("error", "share misclassified", ReadoutDirection::like_retrained, 9, 25);
  const nlohmann::json json = to_json(readout);
  EXPECT_EQ(json.at("name"), "error");
  EXPECT_EQ(json.at("unit"), "share");
  EXPECT_EQ(json.at("definition"), "share misclassified");
  EXPECT_EQ(json.at("direction"), "as close to retrain as possible");
  EXPECT_EQ(json.at("value"), 0.36);
  EXPECT_EQ(json.at("interval").at("low"), readout.interval->low);
  EXPECT_EQ(json.at("interval").at("high"), readout.interval->high);
  EXPECT_EQ(json.at("interval").at("method"), "Wilson, 95 %");
  EXPECT_FALSE(json.contains("reason"));
}

TEST(Readout, InfiniteValuesAreWordsWithAReason) {
  const Readout readout = mean_readout("bound", "nats", "mean bound", ReadoutDirection::small,
                                       {1.0, infinity, infinity});
  const nlohmann::json json = nlohmann::json::parse(to_json(readout).dump());
  EXPECT_EQ(json.at("value"), "infinite");
  EXPECT_EQ(json.at("reason"), "2 of 3 values are not finite");
  EXPECT_FALSE(json.contains("interval"));
  EXPECT_NE(refusal([] {
              mean_readout("bound", "nats", "d", ReadoutDirection::small, {});
            }).find("no values"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
