#include "pumice/experiment/references.h"

#include <gtest/gtest.h>

#include "pumice/evaluation/membership_attack.h"
#include "pumice/experiment/shadow_models.h"
#include "pumice/model/zoo.h"
#include "refusal.h"
#include "small_data.h"

namespace pumice {
namespace {

using testing::blob_dataset;
using testing::refusal;

// A small trained network with all that a forgetting task needs.
struct Trained {
  Dataset train = blob_dataset(12);
  Dataset test = blob_dataset(6, 3, 1, 8, 2);
  Network network{
      {.name = "mlp", .width = 0.25, .input_channels = 1, .classes = 3, .image_size = 8}};
  Weights start = fresh_weights(network, 1);
  Normalization normalization = measure_normalization(train);
  Split split;
  TrainingOptions recipe{.epochs = 6, .batch_size = 8, .rate = 0.05, .weight_decay = 0.05};
  Weights weights;

  Trained() {
    for (std::string& id : test.ids) id = "test/" + id;
    split = make_split(train, test, {"train/0", "train/3", "train/6"});
    Training training(network, start, {train, {}, false}, normalization, recipe);
    train_to_end(training, recipe, {});
    weights = training.state().weights;
  }
  ForgettingTask task() {
    return {.model = network,
            .weights = weights,
            .centre = start.flat,
            .start = start.flat,
            .train = train,
            .split = split,
            .normalization = normalization,
            .weight_decay = recipe.weight_decay,
            .recipe = recipe};
  }
};

TEST(References, TheFirstIsWhatTheRetrainMethodGivesAndTheOthersDiffer) {
  Trained trained;
  const std::vector<Weights> references =
      retrained_references(trained.network, trained.start, trained.train, trained.split,
                           trained.normalization, {.recipe = trained.recipe, .count = 3});
  ASSERT_EQ(references.size(), 3U);
  ForgettingTask task = trained.task();
  SharedProblems shared(task);
  const Scrubbed retrained = scrub(task, shared, {.method = "retrain"});
  EXPECT_TRUE(references[0].flat.equal(retrained.sample.flat));
  EXPECT_FALSE(references[1].flat.equal(references[0].flat));
  EXPECT_FALSE(references[2].flat.equal(references[1].flat));
}

TEST(References, DoNotDependOnTheCohortsPixels) {
  Trained trained;
  const auto references = [&] {
    return retrained_references(trained.network, trained.start, trained.train, trained.split,
                                trained.normalization, {.recipe = trained.recipe, .count = 2});
  };
  const std::vector<Weights> before = references();
  for (const std::int64_t position : trained.split.cohort) trained.train.images[position].zero_();
  const std::vector<Weights> after = references();
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(before[i].flat.equal(after[i].flat)) << i;
}

TEST(References, RecipesThatTrainStatisticsAreRefused) {
  Trained trained;
  trained.recipe.update_statistics = true;
  EXPECT_EQ(refusal([&] {
              retrained_references(trained.network, trained.start, trained.train, trained.split,
                                   trained.normalization, {.recipe = trained.recipe});
            }),
            "references: the recipe trains batch-norm statistics, must have frozen ones");
}

TEST(ShadowModels, MarginsAreThoseOfTheScrubbedAndTheRetrainedShadows) {
  Trained trained;
  const ForgettingTask task = trained.task();
  const ShadowModels shadows = train_shadows(task, {.count = 2});
  const ShadowMargins margins =
      shadow_margins(task, trained.test, shadows, {.method = "consistent"});
  EXPECT_EQ(margins.cohort.unlearned.sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(margins.retain.never_saw.sizes(), (std::vector<std::int64_t>{2, 33}));
  EXPECT_EQ(margins.test.unlearned.sizes(), (std::vector<std::int64_t>{2, 18}));

  // The second shadow, by hand.
  ForgettingTask own = task;
  own.weights = shadows.with_cohort[1];
  SharedProblems shared(own);
  const Scrubbed scrubbed = scrub(own, shared, {.method = "consistent"});
  const at::Tensor inputs = network_inputs(trained.test.images, trained.normalization);
  const at::Tensor logits = trained.network.logits(scrubbed.sample, inputs);
  const at::Tensor expected = at::tensor(pumice::margins(logits, trained.test.labels), at::kDouble);
  EXPECT_TRUE(margins.test.unlearned[1].allclose(expected, 1e-4, 1e-5));
  const at::Tensor other = trained.network.logits(shadows.without_cohort[0], inputs);
  EXPECT_TRUE(margins.test.never_saw[0].allclose(
      at::tensor(pumice::margins(other, trained.test.labels), at::kDouble), 1e-4, 1e-5));
}

TEST(ShadowModels, NoShadowSharesItsOrderWithTheModelOrAReference) {
  const TrainingOptions recipe;
  std::vector<std::uint64_t> seeds{recipe.order_seed};
  for (std::int64_t i = 0; i < 3; ++i) {
    seeds.push_back(reference_recipe(recipe, i + 1).order_seed);
    seeds.push_back(shadow_recipe(recipe, true, i).order_seed);
    seeds.push_back(shadow_recipe(recipe, false, i).order_seed);
  }
  std::sort(seeds.begin(), seeds.end());
  EXPECT_EQ(std::adjacent_find(seeds.begin(), seeds.end()), seeds.end());
}

TEST(ShadowModels, WithoutAStartOrWithOneShadowTheyAreRefused) {
  Trained trained;
  ForgettingTask task = trained.task();
  EXPECT_EQ(refusal([&] { train_shadows(task, {.count = 1}); }), "shadows: 1, must be >= 2");
  task.start.reset();
  EXPECT_EQ(refusal([&] { train_shadows(task, {}); }),
            "shadows: the start is not known, must be given (--init)");
}

}  // namespace
}  // namespace pumice
