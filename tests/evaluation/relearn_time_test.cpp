#include "pumice/evaluation/relearn_time.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "evaluation/small_audits.h"
#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/model/training.h"
#include "refusal.h"
#include "small_data.h"

namespace pumice {
namespace {

using testing::refusal;

struct Situation {
  std::shared_ptr<testing::FunctionModel> model = testing::curved_classifier();
  Dataset data = testing::blob_dataset(8);
  Normalization normalization = measure_normalization(data);
  std::vector<std::int64_t> cohort{0, 3, 6};
  Weights start = model->random_weights(at::kFloat);
  Weights original = trained({});
  Weights retrained = trained(cohort);

  Weights trained(const std::vector<std::int64_t>& excluded) const {
    const TrainingSet set{data, excluded, false};
    const TrainingOptions options{
        .epochs = 30, .batch_size = 8, .weight_decay = 0, .epochs_after_zero_error = {}};
    Training training(*model, start, set, normalization, options);
    while (!training.finished()) training.run_epoch([](std::int64_t) { return true; });
    return training.state().weights;
  }
  RelearnTime relearn(const Weights& weights, const RelearnOptions& options = {}) const {
    return relearn_time(*model, weights, original, data, cohort, normalization, options);
  }
};

TEST(RelearnTime, OfTheOriginalIsOne) {
  const Situation situation;
  const RelearnTime time = situation.relearn(situation.original);
  EXPECT_EQ(time.epochs, 1);
  EXPECT_EQ(time.text(), "1");
  EXPECT_NEAR(time.target,
              evaluate(*situation.model, situation.original,
                       subset(situation.data, situation.cohort), situation.normalization)
                      .loss +
                  1e-5,
              1e-12);
}

TEST(RelearnTime, OneEpochIsPlainGradientDescentOnTheDrawnExamples) {
  const Situation situation;
  const RelearnOptions options{
      .rate = 0.02, .batch_size = 24, .weight_decay = 0.5, .max_epochs = 2, .seed = 5};
  const RelearnTime time = situation.relearn(situation.start, options);
  ASSERT_EQ(time.losses.size(), 3u);
  const at::Tensor start = situation.start.flat;
  Weights weights{situation.start.layout, start.clone()};
  const Dataset forgotten = subset(situation.data, situation.cohort);
  for (const int epoch : {1, 2}) {
    RandomStream stream(5, "relearn/" + std::to_string(epoch));
    std::vector<std::int64_t> drawn(24);
    for (std::int64_t& position : drawn) position = static_cast<std::int64_t>(stream.below(24));
    const Dataset batch = subset(situation.data, drawn);
    const Weights leaf{weights.layout, weights.flat.clone().requires_grad_()};
    const at::Tensor objective =
        at::cross_entropy_loss(
            situation.model->logits(leaf, network_inputs(batch.images, situation.normalization)),
            batch.labels) +
        0.25 * (leaf.flat - start).square().sum();
    weights.flat = weights.flat - 0.02 * torch::autograd::grad({objective}, {leaf.flat})[0];
    EXPECT_NEAR(time.losses[static_cast<std::size_t>(epoch)],
                evaluate(*situation.model, weights, forgotten, situation.normalization).loss, 1e-6);
  }
}

TEST(RelearnTime, IsTheFirstEpochAtTheTargetAndNotBefore) {
  const Situation situation;
  const RelearnTime time = situation.relearn(situation.retrained, {.rate = 0.1, .batch_size = 8});
  ASSERT_TRUE(time.epochs) << "the limit is too low for this data";
  EXPECT_GT(*time.epochs, 1);
  EXPECT_EQ(time.losses.size(), static_cast<std::size_t>(*time.epochs) + 1);
  EXPECT_LE(time.losses.back(), time.target);
  for (std::size_t i = 0; i + 1 < time.losses.size(); ++i) EXPECT_GT(time.losses[i], time.target);
  const RelearnTime censored = situation.relearn(
      situation.retrained, {.rate = 0.1, .batch_size = 8, .max_epochs = *time.epochs - 1});
  EXPECT_FALSE(censored.epochs);
}

TEST(RelearnTime, ACensoredTimeSaysMoreThanTheLimit) {
  const Situation situation;
  double share = 0;
  const RelearnTime time = situation.relearn(
      situation.start, {.rate = 1e-6, .max_epochs = 3, .progress = [&](double s) { share = s; }});
  EXPECT_FALSE(time.epochs);
  EXPECT_EQ(time.text(), "> 3");
  EXPECT_EQ(share, 1);
  const nlohmann::json json = to_json(relearn_readout(time));
  EXPECT_EQ(json.at("value"), 3);
  EXPECT_EQ(json.at("interval").at("high"), "infinite");
  EXPECT_EQ(json.at("interval").at("method"), "censored: more than 3");
}

TEST(RelearnTime, TheModelUnderTestIsNotTouchedAndTheOrderOfTheCohortDoesNotMatter) {
  Situation situation;
  const std::string before = digest(*situation.model, situation.retrained);
  const RelearnTime first = situation.relearn(situation.retrained, {.rate = 0.1, .batch_size = 8});
  EXPECT_EQ(digest(*situation.model, situation.retrained), before);
  EXPECT_FALSE(situation.retrained.flat.requires_grad());
  situation.cohort = {6, 0, 3};
  const RelearnTime again = situation.relearn(situation.retrained, {.rate = 0.1, .batch_size = 8});
  EXPECT_EQ(first.epochs, again.epochs);
}

TEST(RelearnTime, ATrainingThatDivergesIsToldAndNotCalledSlow) {
  const Situation situation;
  const RelearnTime time = situation.relearn(situation.start, {.rate = 1e38, .max_epochs = 20});
  EXPECT_FALSE(time.epochs);
  EXPECT_EQ(time.text(), "failed");
  EXPECT_NE(time.explanation.find("the rate is too high"), std::string::npos);
  EXPECT_EQ(to_json(relearn_readout(time)).at("value"), "undefined");
}

TEST(RelearnTime, WhatDoesNotFitIsRefused) {
  Situation situation;
  EXPECT_NE(refusal([&] { situation.relearn(situation.start, {.rate = 0}); }).find("must be > 0"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              situation.relearn(testing::linear_classifier()->random_weights(at::kFloat));
            }).find("the model under test"),
            std::string::npos);
  EXPECT_THROW(situation.relearn(situation.start,
                                 {.rate = 1e-6, .progress = [](double) { fail("enough"); }}),
               Error);
  situation.cohort.clear();
  EXPECT_NE(refusal([&] { situation.relearn(situation.start); }).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace pumice
