#include "pumice/evaluation/audit.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "pumice/evaluation/activation_distance.h"
#include "pumice/model/training.h"
#include "pumice/model/zoo.h"
#include "refusal.h"
#include "small_data.h"

namespace pumice {
namespace {

using testing::refusal;

// A memorised cohort: half of class 0 in the training set is labelled wrongly, and these are to be
// forgotten. A network that saw them repeats the wrong labels, one that did not cannot.
struct Story {
  std::shared_ptr<Network> model;
  Dataset train, test;
  Split split;
  Normalization normalization;
  Weights original;
  std::vector<Weights> retrained;  // four, in other orders

  static const Story& once() {
    static const Story story = make();
    return story;
  }

  AuditedModel noisy(const Weights& weights, double variance = 1e-4) const {
    return {model, weights, {weights, at::full({weights.flat.numel()}, variance, at::kDouble)}};
  }
  AuditTask task(std::size_t references, double variance = 1e-4) const {
    AuditTask result{.train = train,
                     .split = split,
                     .test = test,
                     .normalization = normalization,
                     .original = noisy(original, variance),
                     .references = {}};
    for (std::size_t i = 0; i < references; ++i) {
      result.references.push_back(noisy(retrained[i], variance));
    }
    return result;
  }

 private:
  static Story make() {
    Story story;
    story.train = testing::blob_dataset(20, 3, 1, 8, 1);
    story.test = testing::blob_dataset(20, 3, 1, 8, 2);
    for (std::string& id : story.test.ids) id = "test/" + id;
    for (std::int64_t i = 0; i < story.train.size(); ++i) {
      const bool forgotten = i % 3 == 0 && i < 30;
      if (forgotten) story.train.labels[i] = 1 + (i / 3) % 2;
      (forgotten ? story.split.cohort : story.split.retain).push_back(i);
    }
    story.normalization = measure_normalization(story.train);
    story.model = std::make_shared<Network>(Architecture{
        .name = "mlp", .width = 1, .input_channels = 1, .classes = 3, .image_size = 8});
    const Weights start = fresh_weights(*story.model, 1);
    const auto trained = [&](const std::vector<std::int64_t>& excluded, std::uint64_t order) {
      TrainingOptions options{.epochs = 60, .batch_size = 8, .rate = 0.05, .weight_decay = 1e-4};
      options.epochs_after_zero_error.reset();
      options.order_seed = order;
      Training training(*story.model, start, {story.train, excluded}, story.normalization, options);
      while (!training.finished()) training.run_epoch([](std::int64_t) { return true; });
      return training.state().weights;
    };
    story.original = trained({}, 1);
    for (std::uint64_t order = 1; order <= 4; ++order) {
      story.retrained.push_back(trained(story.split.cohort, order));
    }
    return story;
  }
};

AuditOptions all_but_relearning() {
  return {.groups = {"errors", "attack", "margin", "distance", "path", "bounds", "split",
                     "adversary", "utility"},
          .adversarial_starts = 1,
          .adversarial_iterations = 3};
}

const JudgedReadout& of(const AuditReport& report, const std::string& id) {
  const JudgedReadout* found = report.find(id);
  EXPECT_NE(found, nullptr) << id;
  return *found;
}

TEST(Audit, TheOriginalHandedInAsScrubbedLeaks) {
  const Story& story = Story::once();
  const AuditTask task = story.task(3);
  const AuditReport report =
      Audit(task, all_but_relearning()).judge("planted", story.noisy(story.original));
  EXPECT_EQ(report.overall.verdict, Verdict::leaks) << report.overall.sentence;
  for (const char* id : {"cohort_error", "cohort_loss", "margin_auc_cohort", "distance_cohort"}) {
    EXPECT_EQ(of(report, id).judgement.verdict, Verdict::leaks)
        << id << ": " << of(report, id).judgement.because;
  }
  EXPECT_EQ(of(report, "cohort_error").readout.value, of(report, "cohort_error").original);
}

TEST(Audit, AnotherRetrainedModelDoesNotLeak) {
  const Story& story = Story::once();
  const AuditTask task = story.task(3);
  const AuditReport report =
      Audit(task, all_but_relearning()).judge("retrained", story.noisy(story.retrained[3]));
  for (const JudgedReadout& judged : report.readouts) {
    EXPECT_NE(judged.judgement.verdict, Verdict::leaks)
        << judged.id << ": " << judged.judgement.because;
  }
  EXPECT_EQ(report.overall.verdict, Verdict::like_retrained) << report.overall.sentence;
}

TEST(Audit, RelearnTimeOfTheOriginalIsOneAndTheModelStaysAsItWas) {
  const Story& story = Story::once();
  const AuditTask task = story.task(1);
  AuditOptions options{.groups = {"relearn"}};
  options.relearn.rate = 0.05;
  options.relearn.max_epochs = 5;
  const AuditedModel subject = story.noisy(story.retrained[1]);
  const std::string before = digest(*subject.model, subject.released);
  const AuditReport report = Audit(task, options).judge("model", subject);
  const JudgedReadout& relearn = of(report, "relearn_time");
  EXPECT_EQ(relearn.original, 1);
  EXPECT_GT(relearn.readout.value, 1);
  EXPECT_EQ(digest(*subject.model, subject.released), before);
}

TEST(Audit, AuditsUnderOtherNoiseShareWhatDoesNotDependOnIt) {
  const Story& story = Story::once();
  const AuditTask task = story.task(2), louder_task = story.task(2, 4e-4);
  const auto known = std::make_shared<KnownReadouts>();
  Audit(task, all_but_relearning(), known).judge("model", story.noisy(story.retrained[3]));
  const AuditedModel louder = story.noisy(story.retrained[3], 4e-4);
  const AuditReport shared = Audit(louder_task, all_but_relearning(), known).judge("model", louder);
  EXPECT_EQ(to_json(shared).dump(),
            to_json(Audit(louder_task, all_but_relearning()).judge("model", louder)).dump());
  // What is shared is not computed again, and bounds are not shared.
  EXPECT_TRUE(known->contains("cohort_error"));
  EXPECT_FALSE(known->contains("white_box"));
  known->at("cohort_error").original = -1;
  const AuditReport told = Audit(louder_task, all_but_relearning(), known).judge("model", louder);
  EXPECT_EQ(of(told, "cohort_error").original, -1);
}

TEST(Audit, NoReadoutChangesTheModelOrDependsOnTheOrderOfExamples) {
  const Story& story = Story::once();
  const AuditedModel subject = story.noisy(story.retrained[3]);
  const std::string before = digest(*subject.model, subject.released);
  AuditOptions options = all_but_relearning();
  options.groups.push_back("relearn");
  options.relearn.max_epochs = 2;
  const AuditTask task = story.task(2);
  const AuditReport report = Audit(task, options).judge("model", subject);
  EXPECT_EQ(digest(*subject.model, subject.released), before);

  std::vector<std::int64_t> reversed;
  for (std::int64_t i = story.train.size(); i-- > 0;) reversed.push_back(i);
  const Dataset train = subset(story.train, reversed), test = subset(story.test, reversed);
  Split split;
  for (std::int64_t i = 0; i < train.size(); ++i) {
    const std::int64_t position = reversed[static_cast<std::size_t>(i)];
    const bool forgotten =
        std::binary_search(story.split.cohort.begin(), story.split.cohort.end(), position);
    (forgotten ? split.cohort : split.retain).push_back(i);
  }
  const AuditTask other{.train = train,
                        .split = split,
                        .test = test,
                        .normalization = story.normalization,
                        .original = task.original,
                        .references = task.references};
  const AuditReport turned = Audit(other, options).judge("model", subject);
  EXPECT_EQ(to_json(report), to_json(turned));
}

TEST(Audit, DistancesAreMeansOverReferencesAndAReferenceIsComparedWithTheOthers) {
  const Story& story = Story::once();
  const AuditTask task = story.task(2);
  const AuditReport report =
      Audit(task, {.groups = {"distance"}}).judge("model", story.noisy(story.original));
  const at::Tensor inputs =
      network_inputs(subset(story.train, story.split.cohort).images, story.normalization);
  const auto distance = [&](const Weights& one, const Weights& other) {
    return activation_distances(softmax_outputs(*story.model, one, inputs),
                                softmax_outputs(*story.model, other, inputs))
        .mean()
        .item<double>();
  };
  const JudgedReadout& judged = of(report, "distance_cohort");
  EXPECT_NEAR(judged.readout.value,
              (distance(story.original, story.retrained[0]) +
               distance(story.original, story.retrained[1])) /
                  2,
              1e-6);
  ASSERT_EQ(judged.references.size(), 2);
  EXPECT_NEAR(judged.references[0], distance(story.retrained[0], story.retrained[1]), 1e-6);
}

TEST(Audit, TwoRetrainedModelsAreOnePairOfWhichChanceMakesMore) {
  const Story& story = Story::once();
  const AuditTask two = story.task(2), three = story.task(3);
  const AuditOptions options{.groups = {"distance"}};
  const AuditReport of_two = Audit(two, options).judge("third", story.noisy(story.retrained[2]));
  const AuditReport of_three =
      Audit(three, options).judge("third", story.noisy(story.retrained[2]));
  for (const char* id : {"distance_cohort", "distance_retain", "distance_test"}) {
    const JudgedReadout& judged = of(of_two, id);
    EXPECT_EQ(judged.references[0], judged.references[1]) << id;
    EXPECT_NEAR(judged.judgement.band->most,
                std::max(4 * judged.references[0], judged.judgement.band->high), 1e-9)
        << id;
    EXPECT_NE(judged.judgement.verdict, Verdict::leaks) << judged.judgement.because;
    EXPECT_NE(judged.judgement.verdict, Verdict::over_forgotten) << judged.judgement.because;
  }
  // Three are three pairs, whose spread is known.
  const JudgedReadout& judged = of(of_three, "distance_cohort");
  const auto band = reference_band(
      judged.references, {.resolution = 0.01, .scale = Scale::multiplicative, .compares = true});
  EXPECT_EQ(judged.judgement.band->high, band->high);
  EXPECT_EQ(judged.judgement.band->most, band->most);
}

TEST(Audit, WithoutReferencesNumbersStandAndVerdictsCannotBeTold) {
  const Story& story = Story::once();
  const AuditTask task = story.task(0);
  const AuditReport report =
      Audit(task, all_but_relearning()).judge("model", story.noisy(story.original));
  EXPECT_EQ(report.overall.verdict, Verdict::cannot_tell);
  EXPECT_TRUE(std::isfinite(of(report, "cohort_error").readout.value));
  const JudgedReadout& distance = of(report, "distance_cohort");
  EXPECT_TRUE(std::isnan(distance.readout.value));
  EXPECT_NE(distance.judgement.because.find("no retrained model"), std::string::npos);
}

TEST(Audit, WithoutNoiseBoundsAreInfiniteAndSayWhy) {
  const Story& story = Story::once();
  AuditTask task = story.task(2);
  for (AuditedModel& reference : task.references) reference.distribution.variance.reset();
  const AuditReport report = Audit(task, {.groups = {"bounds", "adversary"}})
                                 .judge("model", without_noise(story.model, story.retrained[2]));
  for (const char* id : {"white_box", "black_box_cohort", "joint_cohort", "adversarial_query"}) {
    const JudgedReadout& judged = of(report, id);
    EXPECT_TRUE(std::isinf(judged.readout.value)) << id;
    EXPECT_NE(judged.readout.reason.find("noise"), std::string::npos) << judged.readout.reason;
    EXPECT_EQ(judged.judgement.verdict, Verdict::cannot_tell);
  }
}

TEST(Audit, CurvesBeginAndEndWhereTheirReadoutsAre) {
  const Story& story = Story::once();
  const AuditTask task = story.task(3);
  const AuditReport report =
      Audit(task, all_but_relearning()).judge("model", story.noisy(story.retrained[3]));
  const nlohmann::json& path = report.curves.at("path");
  ASSERT_EQ(path.at("positions").size(), 11);
  EXPECT_NEAR(path.at("cohort").front(), *of(report, "distance_cohort").original, 1e-6);
  EXPECT_NEAR(path.at("cohort").back(), of(report, "distance_cohort").readout.value, 1e-6);
  const nlohmann::json& bounds = report.curves.at("bounds_by_queries");
  EXPECT_EQ(bounds.at("nats").size(), 10);
  EXPECT_TRUE(std::is_sorted(bounds.at("nats").begin(), bounds.at("nats").end()));
  std::int64_t counted = 0;
  for (const std::int64_t count : report.curves.at("entropies").at("retain")) counted += count;
  EXPECT_EQ(counted, 50);
  EXPECT_EQ(report.curves.at("roc").at("true_positive_rate").back(), 1);
}

TEST(Audit, WhatCannotBeAuditedIsRefusedWithWhatToDo) {
  const Story& story = Story::once();
  const AuditTask good = story.task(1);
  const auto because = [&](const Dataset& test, const Split& split,
                           const std::vector<AuditedModel>& references) {
    return refusal([&] {
      const AuditTask task{.train = story.train,
                           .split = split,
                           .test = test,
                           .normalization = story.normalization,
                           .original = good.original,
                           .references = references};
      Audit(task, {});
    });
  };
  EXPECT_NE(because(subset(story.test, {0}), story.split, {}).find("1 test examples"),
            std::string::npos);
  EXPECT_NE(because(subset(story.test, {0, 3, 6}), story.split, {})
                .find("class 'class 1' has no test example"),
            std::string::npos);
  EXPECT_NE(because(story.test, {{}, story.split.retain}, {}).find("cohort is empty"),
            std::string::npos);
  const auto other = std::make_shared<Network>(
      Architecture{.name = "mlp", .width = 2, .input_channels = 1, .classes = 3, .image_size = 8});
  EXPECT_NE(because(story.test, story.split, {without_noise(other, fresh_weights(*other, 1))})
                .find("must be of the original's architecture"),
            std::string::npos);
  EXPECT_NE(refusal([&] { Audit(good, {.groups = {"erors"}}); }).find("did you mean 'errors'?"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
