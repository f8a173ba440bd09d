#include "pumice/evaluation/shadow_attack.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "command.h"
#include "evaluation/made_shadows.h"
#include "npy.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::make_shadows;
using testing::random_order;
using testing::refusal;

// Without the test by relabelling, which is the costly part.
const ShadowAttackOptions untested{.relabellings = 0};

double normal_distribution(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

bool holds(const std::optional<Interval>& interval, double value) {
  return interval && interval->low <= value && value <= interval->high;
}

TEST(ShadowAttack, ScoresAndAreaEqualThoseOfAReferenceThatRefitsEverything) {
  const testing::TemporaryFolder folder;
  const MarginTable shadows =
      make_shadows({.unlearned = 6, .never_saw = 8, .examples = 11, .shift = 0.7}, 1);
  const at::Tensor released = torch::randn({11}, at::kDouble);
  testing::save_npy(folder / "unlearned.npy", shadows.unlearned);
  testing::save_npy(folder / "never_saw.npy", shadows.never_saw);
  testing::save_npy(folder / "released.npy", released);
  const auto run = testing::run_command(
      std::string(PUMICE_PYTHON) + " " PUMICE_SOURCE_DIR "/tests/fixtures/shadow_reference.py " +
      folder.path().string());
  ASSERT_EQ(run.exit_code, 0) << run.error;
  for (const ShadowVariance variance : {ShadowVariance::pooled, ShadowVariance::per_example}) {
    const at::Tensor expected = testing::load_npy(
        folder / (variance == ShadowVariance::pooled ? "pooled.npy" : "per_example.npy"));
    const ShadowAttackOptions options{.variance = variance, .relabellings = 0};
    const ShadowAttack attack = shadow_attack(shadows, options);
    const ReleasedAttack on_release = released_attack(shadows, released, options);
    const at::Tensor found = at::cat(
        {at::tensor({attack.area}, at::kDouble), attack.unlearned_scores.flatten(),
         attack.never_saw_scores.flatten(), at::tensor(on_release.log_ratios, at::kDouble)});
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-11) << variance_text(variance);
    EXPECT_EQ(on_release.called,
              expected.narrow(0, expected.size(0) - 11, 11).gt(0).sum().item<std::int64_t>());
    EXPECT_EQ(attack.pairs.members, 66);
    EXPECT_EQ(attack.pairs.others, 88);
  }
}

// The likelihood ratio of N(d, 1) against N(0, 1) grows with x, so its area is Φ(d/√2).
TEST(ShadowAttack, TheAreaOfTwoNormalDistributionsIsItsClosedForm) {
  for (const double distance : {1.0, 2.0}) {
    const ShadowAttack attack = shadow_attack(
        make_shadows({.unlearned = 24, .never_saw = 24, .examples = 100, .shift = distance}, 2),
        untested);
    const double truth = normal_distribution(distance / std::sqrt(2.0));
    EXPECT_NEAR(attack.area, truth, 0.02);
    EXPECT_NEAR(attack.pairs.area, truth, 0.02);
    EXPECT_TRUE(holds(attack.area_interval, truth)) << attack.brief();
    // At 1 % false positives the threshold is the 99 % quantile: P(N(d, 1) > it).
    EXPECT_NEAR(attack.pairs.true_positive_rate_at(0.01),
                1 - normal_distribution(normal_quantile(0.99) - distance), 0.08);
  }
}

TEST(ShadowAttack, EqualDistributionsGiveOneHalfOnAverageEvenWithFourModelsASide) {
  for (const double shared : {0.0, 1.0}) {
    double sum = 0;
    int covered = 0;
    constexpr int repeats = 150;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const ShadowAttack attack = shadow_attack(
          make_shadows({.unlearned = 4, .never_saw = 4, .shared = shared}, 100 + repeat), untested);
      sum += attack.area;
      covered += holds(attack.area_interval, 0.5);
    }
    // One model alone left out would give about 0.46 with independent margins.
    EXPECT_NEAR(sum / repeats, 0.5, shared > 0 ? 0.035 : 0.015);
    EXPECT_GE(covered, 0.93 * repeats);
  }
}

TEST(ShadowAttack, TheIntervalKnowsThatPairsOfOneModelAreNotIndependent) {
  constexpr int repeats = 80;
  std::vector<ShadowAttack> attacks;
  double truth = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    attacks.push_back(
        shadow_attack(make_shadows({.shift = 1, .shared = 0.5}, 300 + repeat), untested));
    truth += attacks.back().area / repeats;
  }
  int covered = 0, naively = 0;
  for (const ShadowAttack& attack : attacks) {
    covered += holds(attack.area_interval, truth);
    naively += holds(area_interval(attack.area, attack.pairs.members, attack.pairs.others), truth);
  }
  EXPECT_GE(covered, 0.9 * repeats);
  EXPECT_LE(naively, 0.7 * repeats);
}

TEST(ShadowAttack, APlantedLeakIsFound) {
  const MarginTable shadows = make_shadows({.shift = 3}, 4);
  const ShadowAttack attack = shadow_attack(shadows);
  EXPECT_GT(attack.area, 0.95);
  EXPECT_GT(attack.area_interval->low, 0.9);
  EXPECT_GT(attack.pairs.true_positive_rate_at(0.01), 0.5);
  EXPECT_EQ(attack.chance, 1.0 / 200);
  const at::Tensor level = shadows.never_saw.mean(0);
  torch::manual_seed(5);
  const at::Tensor noise = torch::randn({25}, at::kDouble);
  const ReleasedAttack leaking = released_attack(shadows, level + 3 + noise);
  EXPECT_GE(leaking.called, 20);
  const ReleasedAttack clean = released_attack(shadows, level + noise);
  EXPECT_LE(clean.called, 5);
  // Means of N(±d²/2, d²) for distance d = 3.
  EXPECT_NEAR(released_attack_readouts(leaking)[0].value, 4.5, 2.5);
  EXPECT_NEAR(released_attack_readouts(clean)[0].value, -4.5, 2.5);
}

TEST(ShadowAttack, ModelsThatAreAllToldApartLeaveAnIntervalOfMoreThanAPoint) {
  const ShadowAttack attack = shadow_attack(make_shadows({.shift = 50}, 6), untested);
  EXPECT_NEAR(attack.area, 1, 1e-12);
  EXPECT_NEAR(attack.area_interval->high, 1, 1e-12);
  EXPECT_LT(attack.area_interval->low, 0.95);
  EXPECT_LT(attack.rate_interval->low, 0.8);
  EXPECT_NE(attack.area_interval->method.find("models as observations"), std::string::npos);
}

// An exact test: its chance is uniform if nothing differs.
TEST(ShadowAttack, TheChanceOfEqualDistributionsIsUniform) {
  constexpr int repeats = 100;
  int below_fifth = 0, below_half = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const ShadowAttack attack = shadow_attack(
        make_shadows({.unlearned = 4, .never_saw = 5, .examples = 10, .shared = 1}, 500 + repeat),
        {.relabellings = 39, .seed = static_cast<std::uint64_t>(repeat)});
    below_fifth += *attack.chance <= 0.2;
    below_half += *attack.chance <= 0.5;
  }
  EXPECT_NEAR(below_fifth, 20, 12);
  EXPECT_NEAR(below_half, 50, 15);
}

TEST(ShadowAttack, FewModelsAreRelabelledInAllWaysThereAre) {
  const testing::MadeShadows made{.unlearned = 4, .never_saw = 3, .shift = 6};
  EXPECT_EQ(shadow_attack(make_shadows(made, 13), {.relabellings = 34}).chance, 1.0 / 35);
  EXPECT_EQ(shadow_attack(make_shadows(made, 13), {.relabellings = 1000}).chance, 1.0 / 35);
  EXPECT_EQ(shadow_attack(make_shadows(made, 13), {.relabellings = 1000, .seed = 9}).chance,
            1.0 / 35);
  // Exchanging sides of equal size gives the same area again.
  EXPECT_EQ(shadow_attack(make_shadows({.unlearned = 4, .never_saw = 4, .shift = 6}, 13)).chance,
            2.0 / 70);
}

TEST(ShadowAttack, VariancesForEachSideSeeADifferenceInSpreadThatAPooledOneHardlySees) {
  const MarginTable shadows = make_shadows({.unlearned = 16, .never_saw = 16, .spread = 4}, 7);
  const auto area = [&](ShadowVariance variance) {
    return shadow_attack(shadows, {.variance = variance, .relabellings = 0}).area;
  };
  EXPECT_LT(area(ShadowVariance::pooled), 0.65);
  EXPECT_GT(area(ShadowVariance::per_example), 0.8);
}

TEST(ShadowAttack, TheNumberOfModelsDecidesOnTheVarianceAndTheSummaryNamesIt) {
  const ShadowAttackOptions options{.per_example_from = 7, .relabellings = 0};
  const ShadowAttack few = shadow_attack(make_shadows({.never_saw = 6}, 8), options);
  EXPECT_EQ(few.variance, ShadowVariance::pooled);
  EXPECT_NE(few.brief().find("pooled over all examples and both sides"), std::string::npos);
  const ShadowAttack enough = shadow_attack(make_shadows({.never_saw = 7}, 8), options);
  EXPECT_EQ(enough.variance, ShadowVariance::per_example);
  EXPECT_NE(enough.brief().find("for each example and side"), std::string::npos);
  EXPECT_EQ(ShadowAttackOptions{}.per_example_from, 32);
}

TEST(ShadowAttack, TheOrderOfModelsAndOfExamplesChangesNothingToTheBit) {
  const MarginTable shadows = make_shadows({.unlearned = 5, .never_saw = 6, .shift = 0.5}, 9);
  const at::Tensor released = torch::randn({25}, at::kDouble);
  const ShadowAttackOptions options{.relabellings = 30};
  const ShadowAttack first = shadow_attack(shadows, options);
  const ReleasedAttack first_release = released_attack(shadows, released, options);
  for (const std::uint64_t seed : {1, 2}) {
    const at::Tensor examples = random_order(25, seed);
    const at::Tensor models = random_order(5, seed + 10), others = random_order(6, seed + 20);
    const MarginTable mixed{shadows.unlearned.index_select(0, models).index_select(1, examples),
                            shadows.never_saw.index_select(0, others).index_select(1, examples)};
    const ShadowAttack again = shadow_attack(mixed, options);
    EXPECT_EQ(again.area, first.area);
    EXPECT_EQ(again.pairs.area, first.pairs.area);
    EXPECT_EQ(again.area_interval->low, first.area_interval->low);
    EXPECT_EQ(again.rate_interval->high, first.rate_interval->high);
    EXPECT_EQ(again.chance, first.chance);
    EXPECT_TRUE(again.unlearned_scores.equal(
        first.unlearned_scores.index_select(0, models).index_select(1, examples)));
    EXPECT_TRUE(again.never_saw_scores.equal(
        first.never_saw_scores.index_select(0, others).index_select(1, examples)));
    const ReleasedAttack release = released_attack(mixed, released.index_select(0, examples));
    EXPECT_TRUE(
        at::tensor(release.log_ratios, at::kDouble)
            .equal(at::tensor(first_release.log_ratios, at::kDouble).index_select(0, examples)));
  }
}

TEST(ShadowAttack, ReadoutsSayWhatTheyAreAndWhatIsGood) {
  const MarginTable shadows = make_shadows({.shift = 0.5}, 10);
  const std::vector<Readout> readouts =
      shadow_attack_readouts(shadow_attack(shadows, {.relabellings = 19}));
  ASSERT_EQ(readouts.size(), 3u);
  EXPECT_EQ(readouts[0].direction, ReadoutDirection::like_retrained);
  EXPECT_NE(readouts[0].definition.find("has 0.5"), std::string::npos);
  EXPECT_NE(readouts[0].definition.find("8 and 8 models"), std::string::npos);
  EXPECT_EQ(readouts[2].direction, ReadoutDirection::large);
  const std::vector<Readout> released = released_attack_readouts(
      released_attack(shadows, shadows.never_saw.mean(0) + torch::randn({25}, at::kDouble)));
  ASSERT_EQ(released.size(), 2u);
  EXPECT_NE(released[1].interval->method.find("Wilson"), std::string::npos);
  for (const Readout& readout : {readouts[0], readouts[1], released[0], released[1]}) {
    EXPECT_TRUE(holds(readout.interval, readout.value)) << readout.name;
  }
}

TEST(ShadowAttack, ThreeModelsGiveAnAreaButNoInterval) {
  const ShadowAttack attack =
      shadow_attack(make_shadows({.unlearned = 3, .never_saw = 3}, 11), untested);
  EXPECT_GE(attack.area, 0);
  EXPECT_LE(attack.area, 1);
  EXPECT_FALSE(attack.area_interval || attack.rate_interval || attack.chance);
  EXPECT_EQ(shadow_attack_readouts(attack).size(), 2u);
}

TEST(ShadowAttack, TooFewOrBrokenMarginsAreRefusedWithWhatIsNeeded) {
  const MarginTable good = make_shadows({.unlearned = 4, .never_saw = 4, .examples = 5}, 12);
  const auto refused = [](const MarginTable& shadows, const ShadowAttackOptions& options = {}) {
    return refusal([&] { shadow_attack(shadows, options); });
  };
  const auto says = [](const std::string& sentence, const char* part) {
    return sentence.find(part) != std::string::npos;
  };
  EXPECT_TRUE(says(refused({good.unlearned.narrow(0, 0, 2), good.never_saw}),
                   "margins of 2 models, there must be at least 3"));
  EXPECT_TRUE(says(refused(good, {.variance = ShadowVariance::per_example}), "at least 5"));
  EXPECT_TRUE(says(refused({good.unlearned.narrow(1, 0, 4), good.never_saw}), "4 and 5 examples"));
  EXPECT_TRUE(says(refused({good.unlearned.to(at::kFloat), good.never_saw}), "must be float64"));
  at::Tensor broken = good.never_saw.clone();
  broken[1][2] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(says(refused({good.unlearned, broken}), "not finite"));
  const at::Tensor constant = at::ones({4, 5}, at::kDouble);
  EXPECT_TRUE(says(refused({constant, constant + 1}), "given several times"));
  EXPECT_TRUE(says(refused(good, {.confidence = 1}), "between 0 and 1"));
  EXPECT_TRUE(says(refused(good, {.relabellings = -1}), "must be >= 0"));
  const auto release_refused = [&](const MarginTable& shadows, const at::Tensor& released) {
    return refusal([&] { released_attack(shadows, released); });
  };
  EXPECT_TRUE(says(release_refused(good, at::zeros({4}, at::kDouble)), "must be 5 margins"));
  EXPECT_TRUE(says(release_refused(good, broken[1]), "not finite"));
  EXPECT_TRUE(says(release_refused({good.unlearned, good.never_saw.narrow(0, 0, 1)}, broken[0]),
                   "at least 2"));
}

}  // namespace
}  // namespace pumice
