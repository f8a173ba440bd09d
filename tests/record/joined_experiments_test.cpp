#include "pumice/record/joined_experiments.h"

#include <gtest/gtest.h>

#include "refusal.h"

namespace pumice {
namespace {

using Json = nlohmann::json;
using testing::refusal;

Record experiment(const std::vector<int>& seeds, const std::string& rest = "\n[data]\nx = 1\n") {
  Json runs = Json::array();
  for (const int seed : seeds)
    runs.push_back({{"seed", seed}, {"cohort", 1}, {"value", 10 * seed}});
  return {.kind = "experiment",
          .content = {{"protocol", "title = \"t\"\nseeds = " + Json(seeds).dump() + rest},
                      {"request", {{"seeds", seeds}}},
                      {"seconds", 100.0},
                      {"revision", seeds.front() == 1 ? "one" : "two"},
                      {"machine", "the same"},
                      {"runs", runs}}};
}

TEST(JoinedExperiments, HoldTheRunsOfBothInTheOrderOfTheirSeeds) {
  const auto both = joined(experiment({2, 3}), experiment({1}));
  ASSERT_TRUE(both);
  const Json& content = both->content;
  ASSERT_EQ(content.at("runs").size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(content.at("runs").at(i).at("value"), 10 * (i + 1));
  EXPECT_EQ(content.at("request").at("seeds"), Json({1, 2, 3}));
  EXPECT_EQ(content.at("seconds"), 200.0);
  EXPECT_EQ(content.at("revision"), "two; one");
  EXPECT_EQ(content.at("machine"), "the same");
}

TEST(JoinedExperiments, SayWhatIsTheSameInSomeOfThemOnce) {
  const auto two = joined(experiment({1}), experiment({2}));
  ASSERT_TRUE(two);
  const auto three = joined(*two, experiment({3}));
  ASSERT_TRUE(three);
  EXPECT_EQ(three->content.at("revision"), "one; two");
}

TEST(JoinedExperiments, OnlyOfOneProtocol) {
  EXPECT_FALSE(joined(experiment({1}), experiment({2}, "\n[data]\nx = 2\n")));
  EXPECT_FALSE(joined(experiment({1}), {.kind = "audit"}));
  EXPECT_FALSE(joined({.kind = "forget"}, experiment({1})));
  Record without = experiment({2});
  without.content.erase("protocol");
  EXPECT_FALSE(joined(experiment({1}), without));
}

TEST(JoinedExperiments, ARunThatStandsInBothIsRefused) {
  EXPECT_EQ(refusal([] {
              joined(experiment({1, 2}), experiment({2}));
            }),
            "seed 2, cohort 1: stands in two records of one protocol, must be in one");
}

}  // namespace
}  // namespace pumice
