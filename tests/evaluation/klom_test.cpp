#include "pumice/evaluation/klom.h"

#include <gtest/gtest.h>
#include <torch/types.h>

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

TEST(Klom, HistogramsCountedByHandHaveTheirDivergence) {
  // Two bins over [0, 1]: shares ½, ½ against ¾, ¼.
  EXPECT_NEAR(histogram_divergence({0, 0.2, 0.6, 1}, {0, 0, 0.4, 1}, {.bins = 2}),
              0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25), 1e-15);
  // The middle belongs to the right bin, the right end to the last.
  EXPECT_NEAR(histogram_divergence({0, 0.5}, {0, 1}, {.bins = 2}), 0, 1e-15);
  EXPECT_EQ(histogram_divergence({3, 3}, {3, 3, 3}), 0);
}

TEST(Klom, BinsWithoutARetrainedModelAreSmoothedInTheWayThatIsNamed) {
  const double sum = 1 + 1e-5;
  EXPECT_NEAR(histogram_divergence({0, 1}, {0, 0}, {.bins = 2}),
              0.5 * std::log(0.5 * sum) + 0.5 * std::log(0.5 * sum / 1e-5), 1e-14);
  EXPECT_NEAR(histogram_divergence({0, 1}, {0, 0},
                                   {.bins = 2, .empty = EmptyBins::pseudo_count, .smoothing = 0.5}),
              0.5 * std::log(0.5 * 3 / 2.5) + 0.5 * std::log(0.5 * 3 / 0.5), 1e-15);
  const MarginTable made = make_shadows({}, 1);
  const auto definition = [&](const KlomOptions& options) {
    return klom_readouts(klom("cohort", made.unlearned, made.never_saw, options))[0].definition;
  };
  EXPECT_NE(definition({}).find("at least 1e-05"), std::string::npos);
  EXPECT_NE(definition({.empty = EmptyBins::pseudo_count, .smoothing = 0.5})
                .find("0.5 added to every count"),
            std::string::npos);
}

TEST(Klom, MarginsBeyondTheClipCountAsTheClip) {
  EXPECT_EQ(histogram_divergence({1e9, 0, 3, -1e6}, {-1e7, 50, 2, 400}),
            histogram_divergence({100, 0, 3, -100}, {-100, 50, 2, 100}));
  EXPECT_NE(histogram_divergence({1e9, 0, 3, -1e6}, {-1e7, 50, 2, 400}, {.clip = 1e9}),
            histogram_divergence({100, 0, 3, -100}, {-100, 50, 2, 100}));
}

TEST(Klom, ValuesAndPercentileEqualThoseOfTheReference) {
  const testing::TemporaryFolder folder;
  const MarginTable made =
      make_shadows({.unlearned = 9, .never_saw = 13, .examples = 30, .shift = 1}, 2);
  testing::save_npy(folder / "unlearned.npy", made.unlearned);
  testing::save_npy(folder / "never_saw.npy", made.never_saw);
  testing::save_npy(folder / "released.npy", made.never_saw[0].contiguous());
  const auto run = testing::run_command(
      std::string(PUMICE_PYTHON) + " " PUMICE_SOURCE_DIR "/tests/fixtures/shadow_reference.py " +
      folder.path().string());
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const at::Tensor expected = testing::load_npy(folder / "klom.npy");
  for (const EmptyBins empty : {EmptyBins::floor, EmptyBins::pseudo_count}) {
    const Klom found = klom("cohort", made.unlearned, made.never_saw,
                            {.empty = empty, .smoothing = empty == EmptyBins::floor ? 1e-5 : 0.5});
    const at::Tensor row = expected[empty == EmptyBins::floor ? 0 : 1];
    EXPECT_LT((at::tensor(found.divergences, at::kDouble) - row.narrow(0, 0, 30))
                  .abs()
                  .max()
                  .item<double>(),
              1e-12);
    EXPECT_NEAR(found.value, row[30].item<double>(), 1e-12);
  }
}

TEST(Klom, ModelsOfOneDistributionLookLikeTheNullValueAndAPlantedLeakDoesNot) {
  const testing::MadeShadows made{.unlearned = 12, .never_saw = 24, .examples = 60};
  const MarginTable same = make_shadows(made, 3);
  const Klom equal = klom("test", same.unlearned, same.never_saw);
  EXPECT_EQ(equal.half, 12);
  EXPECT_NEAR(equal.matched->value, equal.null->value, 1.0);
  // Few models: far from zero although nothing differs.
  EXPECT_GT(equal.null->value, 2);
  const Klom leak = klom("cohort", same.unlearned + 3, same.never_saw);
  EXPECT_GT(leak.matched->value, leak.null->interval->high);
  EXPECT_GT(leak.matched->interval->low, leak.null->interval->high);
  EXPECT_EQ(leak.null->value, equal.null->value);
}

TEST(Klom, TheNullValueFallsWithTheNumberOfModels) {
  const auto null_of = [](std::int64_t models) {
    const MarginTable made =
        make_shadows({.unlearned = models, .never_saw = models, .examples = 40}, 4);
    return klom("test", made.unlearned, made.never_saw).null->value;
  };
  const double few = null_of(16), many = null_of(400);
  EXPECT_LT(many, 0.2 * few);
}

TEST(Klom, TheOrderOfModelsAndOfExamplesDoesNotMatter) {
  const MarginTable made = make_shadows({.unlearned = 6, .never_saw = 9, .shift = 0.5}, 5);
  const Klom first = klom("cohort", made.unlearned, made.never_saw);
  const at::Tensor examples = random_order(25, 1);
  const Klom again =
      klom("cohort", made.unlearned.index_select(0, random_order(6, 2)).index_select(1, examples),
           made.never_saw.index_select(0, random_order(9, 3)).index_select(1, examples));
  EXPECT_EQ(again.value, first.value);
  EXPECT_EQ(again.null->value, first.null->value);
  EXPECT_EQ(again.matched->interval->high, first.matched->interval->high);
  EXPECT_TRUE(at::tensor(again.divergences, at::kDouble)
                  .equal(at::tensor(first.divergences, at::kDouble).index_select(0, examples)));
}

TEST(Klom, ReadoutsNameTheSetAndThereIsNoNullValueBelowFourRetrainedModels) {
  const MarginTable made = make_shadows({.never_saw = 4}, 6);
  const std::vector<Readout> all = klom_readouts(klom("retain", made.unlearned, made.never_saw));
  ASSERT_EQ(all.size(), 3u);
  for (const Readout& readout : all) {
    EXPECT_NE(readout.name.find("on retain"), std::string::npos);
    EXPECT_EQ(readout.direction, ReadoutDirection::small);
  }
  const std::vector<Readout> alone =
      klom_readouts(klom("retain", made.unlearned, made.never_saw.narrow(0, 0, 3)));
  EXPECT_EQ(alone.size(), 1u);
}

TEST(Klom, TooFewOrBrokenMarginsAreRefusedWithWhatIsNeeded) {
  const MarginTable good = make_shadows({.examples = 5}, 7);
  const auto refused = [&](const at::Tensor& unlearned, const at::Tensor& retrained,
                           const KlomOptions& options, const char* part) {
    return refusal([&] { klom("cohort", unlearned, retrained, options); }).find(part) !=
           std::string::npos;
  };
  const at::Tensor &own = good.unlearned, &reference = good.never_saw;
  EXPECT_TRUE(refused(own.narrow(0, 0, 1), reference, {}, "1 unlearned models"));
  EXPECT_TRUE(refused(own, reference.narrow(1, 0, 3), {}, "5 and 3 examples"));
  EXPECT_TRUE(refused(own.to(at::kFloat), reference, {}, "must be float64"));
  at::Tensor broken = reference.clone();
  broken[1][2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused(own, broken, {}, "retrained models is not finite"));
  EXPECT_TRUE(refused(own, reference, {.bins = 0}, "must be >= 1"));
  EXPECT_TRUE(refused(own, reference, {.clip = -1}, "must be > 0"));
  EXPECT_TRUE(refused(own, reference, {.smoothing = 0}, "must be > 0"));
  EXPECT_TRUE(refused(own, reference, {.percentile = 95}, "must be in [0, 1]"));
  EXPECT_TRUE(refused(own, reference, {.splits = 0}, "must be >= 1"));
}

}  // namespace
}  // namespace pumice
