#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "command.h"
#include "npy.h"
#include "pumice/core/error.h"
#include "pumice/linalg/threads.h"
#include "pumice/model/checkpoint.h"
#include "pumice/model/training.h"
#include "pumice/model/training_run.h"
#include "pumice/model/zoo.h"
#include "refusal.h"
#include "small_data.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::blob_dataset;
using testing::refusal;
using testing::TemporaryFolder;

bool always(std::int64_t) {
  return true;
}

Architecture small_allcnn() {
  return {.name = "allcnn", .width = 0.1, .input_channels = 1, .classes = 3, .image_size = 8};
}

TrainingOptions quick() {
  TrainingOptions options = finetuning_recipe();
  options.rate = 0.05;
  options.weight_decay = 0.001;
  options.batch_size = 16;
  options.epochs = 4;
  return options;
}

Weights train(const TrainingOptions& options, const Dataset& data,
              std::vector<std::int64_t> excluded = {}, bool replace = false) {
  Network network(small_allcnn());
  Training training(network, fresh_weights(network, 1), {data, std::move(excluded), replace},
                    Normalization{{0.3}, {0.3}}, options);
  while (!training.finished()) training.run_epoch(always);
  return training.state().weights;
}

TEST(TrainingFull, StepsEqualThoseOfAnIndependentOptimiser) {
  const TemporaryFolder folder;
  const Dataset data = blob_dataset(8);
  Network network(small_allcnn());
  const Weights start = fresh_weights(network, 1);
  const Normalization normalization{{0.3}, {0.3}};
  TrainingOptions options = quick();
  options.batch_size = 1000;  // one batch holds everything, so that order does not matter
  options.epochs = 5;
  options.weight_decay = 0.1;
  options.epochs_after_zero_error.reset();
  Training training(network, start, {data, {}, false}, normalization, options);
  while (!training.finished()) training.run_epoch(always);

  network.save(folder / "start.safetensors", start, {});
  testing::save_npy(folder / "inputs.npy", network_inputs(data.images, normalization));
  testing::save_npy(folder / "labels.npy", data.labels);
  const auto result = testing::run_command(
      std::string(PUMICE_PYTHON) +
      " " PUMICE_SOURCE_DIR "/tests/fixtures/reference_networks.py sgd " +
      (folder / "start.safetensors").string() + " " + (folder / "inputs.npy").string() + " " +
      (folder / "labels.npy").string() + " " + (folder / "out.npy").string() + " 5 0.05 0.9 0.1");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const at::Tensor expected = testing::load_npy(folder / "out.npy");
  const double distance = (training.state().weights.flat - expected).norm().item<double>();
  const double displacement = (expected - start.flat).norm().item<double>();
  EXPECT_GT(displacement, 0.01);
  EXPECT_LT(distance, 1e-4 * displacement);
}

TEST(Training, SameSeedSameBytes) {
  const Dataset data = blob_dataset(20);
  EXPECT_TRUE(torch::equal(train(quick(), data).flat, train(quick(), data).flat));
}

TEST(Training, AnotherOrderSeedGivesOtherWeights) {
  const Dataset data = blob_dataset(20);
  TrainingOptions other = quick();
  other.order_seed = 2;
  EXPECT_FALSE(torch::equal(train(quick(), data).flat, train(other, data).flat));
}

TEST(Training, AnotherThreadCountAgreesClosely) {
  const Dataset data = blob_dataset(20);
  set_threads(1);
  const at::Tensor one = train(quick(), data).flat;
  set_threads(2);
  const at::Tensor two = train(quick(), data).flat;
  set_threads(1);
  EXPECT_LT((one - two).norm().item<double>(), 1e-3 * one.norm().item<double>());
}

TEST(Training, ARestoredStateContinuesToTheSameBytes) {
  const Dataset data = blob_dataset(20);
  TrainingOptions options = quick();
  options.augment = true;
  options.update_statistics = true;
  options.schedule = Schedule::one_cycle;
  const Normalization normalization{{0.3}, {0.3}};
  Network network(small_allcnn());
  Training whole(network, fresh_weights(network, 1), {data, {}, false}, normalization, options);
  whole.run_epoch(always);
  whole.run_epoch(always);
  Network other(small_allcnn());
  Training resumed(other, fresh_weights(other, 1), {data, {}, false}, normalization, options);
  TrainingState state = whole.state();
  state.weights.flat = state.weights.flat.clone();
  state.velocity = state.velocity.clone();
  resumed.restore(state);
  other.set_buffers(network.buffers());
  while (!whole.finished()) whole.run_epoch(always);
  while (!resumed.finished()) resumed.run_epoch(always);
  EXPECT_EQ(digest(network, whole.state().weights), digest(other, resumed.state().weights));
}

TEST(Training, StopsFiveEpochsAfterTheFirstWithoutError) {
  const Dataset data = blob_dataset(20);
  TrainingOptions options = quick();
  options.epochs = 200;
  Network network(small_allcnn());
  Training training(network, fresh_weights(network, 1), {data, {}, false},
                    Normalization{{0.3}, {0.3}}, options);
  while (!training.finished()) training.run_epoch(always);
  const auto& history = training.state().history;
  ASSERT_GT(history.size(), 5u);
  ASSERT_LT(history.size(), 200u);
  EXPECT_EQ(history[history.size() - 6].training_error, 0.0);
  if (history.size() > 6) {
    EXPECT_GT(history[history.size() - 7].training_error.value(), 0.0);
  }
}

TEST(Training, DecayPullsToTheStartOrToZero) {
  const Dataset data = blob_dataset(4);
  TrainingOptions options = quick();
  options.momentum = 0;
  options.rate = 0.1;
  options.weight_decay =
      9;  // rate × decay = .9: each step goes nine tenths of the way to the centre
  options.epochs = 20;
  options.epochs_after_zero_error.reset();
  const double start = fresh_weights(Network(small_allcnn()), 1).flat.norm().item<double>();
  EXPECT_NEAR(train(options, data).flat.norm().item<double>(), start, 0.05 * start);
  options.decay_centre = DecayCentre::zero;
  EXPECT_LT(train(options, data).flat.norm().item<double>(), 0.1 * start);
}

TEST(Training, ExcludedExamplesLeaveNoTrace) {
  const Dataset data = blob_dataset(20);
  Dataset changed = data;
  changed.images = data.images.clone();
  for (const std::int64_t position : {3, 7}) changed.images[position].fill_(255);
  for (const bool replace : {false, true}) {
    EXPECT_TRUE(torch::equal(train(quick(), data, {3, 7}, replace).flat,
                             train(quick(), changed, {3, 7}, replace).flat));
  }
  EXPECT_FALSE(torch::equal(train(quick(), data).flat, train(quick(), changed).flat));
}

TEST(Training, ExcludingKeepsTheOrderOfTheOthers) {
  const Dataset data = blob_dataset(20);
  const std::vector<std::int64_t> full =
      training_order(training_places({data, {}, false}, 1), 1, 3);
  const std::vector<std::int64_t> reduced =
      training_order(training_places({data, {5, 9}, false}, 1), 1, 3);
  std::vector<std::int64_t> expected;
  for (const std::int64_t position : full) {
    if (position != 5 && position != 9) expected.push_back(position);
  }
  EXPECT_EQ(reduced, expected);
  EXPECT_NE(full, training_order(training_places({data, {}, false}, 1), 1, 4)) << "epochs differ";
}

TEST(Training, ReplacingFillsEachExcludedPlaceWithARetainedExample) {
  const Dataset data = blob_dataset(20);
  const std::vector<std::int64_t> excluded{5, 9, 10};
  const std::vector<std::int64_t> places = training_places({data, excluded, true}, 1);
  ASSERT_EQ(places.size(), 60u);
  for (std::int64_t i = 0; i < 60; ++i) {
    const std::int64_t position = places[static_cast<std::size_t>(i)];
    if (std::find(excluded.begin(), excluded.end(), i) == excluded.end()) {
      EXPECT_EQ(position, i);
    } else {
      EXPECT_EQ(std::find(excluded.begin(), excluded.end(), position), excluded.end());
      EXPECT_GE(position, 0);
    }
  }
}

TEST(Training, ExcludingEverythingIsAnError) {
  const Dataset data = blob_dataset(1);
  EXPECT_EQ(refusal([&] {
              train(quick(), data, {0, 1, 2});
            }),
            "training: every example is excluded, nothing is left to train on");
}

TEST(Training, TheOneCycleRateRisesAndFallsAsStated) {
  TrainingOptions options;
  options.rate = 1;
  options.schedule = Schedule::one_cycle;
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 101), 0.04);
  EXPECT_DOUBLE_EQ(learning_rate(options, 15, 101), 0.04 + 0.96 / 2);
  EXPECT_DOUBLE_EQ(learning_rate(options, 30, 101), 1);
  EXPECT_NEAR(learning_rate(options, 65, 101), (1 + 1e-4) / 2, 1e-12);
  EXPECT_NEAR(learning_rate(options, 100, 101), 1e-4, 1e-12);
  EXPECT_GT(learning_rate(options, 0, 1), 0) << "a single step";
}

TEST(Training, AugmentationShiftsAndFlipsAndNothingElse) {
  const at::Tensor images =
      torch::arange(1, 1 + 6 * 6, at::kByte).view({1, 1, 6, 6}).repeat({200, 1, 1, 1});
  RandomStream stream(1, "augmentation/1");
  const at::Tensor result = augmented(images, stream);
  const at::Tensor padded = at::constant_pad_nd(images.narrow(0, 0, 1), {4, 4, 4, 4}, 0)[0];
  int identical = 0;
  int flipped = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    bool found = false;
    for (std::int64_t down = 0; down < 9 && !found; ++down) {
      for (std::int64_t right = 0; right < 9 && !found; ++right) {
        const at::Tensor cut = padded.narrow(1, down, 6).narrow(2, right, 6);
        const bool mirrored = torch::equal(result[i], cut.flip({2}));
        found = mirrored || torch::equal(result[i], cut);
        flipped += mirrored;
        identical += found && !mirrored && down == 4 && right == 4;
      }
    }
    EXPECT_TRUE(found) << i;
  }
  EXPECT_NEAR(flipped, 100, 40);
  EXPECT_LT(identical, 20);
}

TEST(Training, ALossThatIsNotFiniteNamesTheEpochAndTheCause) {
  const Dataset data = blob_dataset(20);
  TrainingOptions wild = quick();
  wild.rate = 1e20;
  const std::string rate = refusal([&] { train(wild, data); });
  EXPECT_NE(
      rate.find("the loss is not finite in epoch 1 (rate 1e+20); the rate is probably too high"),
      std::string::npos)
      << rate;

  Dataset broken = data;
  broken.images = data.images.to(at::kFloat) / 255;
  broken.images[5][0][2][2] = std::nanf("");
  Network network(small_allcnn());
  const std::string images = refusal([&] {
    Training training(network, fresh_weights(network, 1), {broken, {}, false}, {}, quick());
    training.run_epoch(always);
  });
  EXPECT_NE(images.find("the images contain NaN or infinity"), std::string::npos) << images;

  Weights start = fresh_weights(network, 1);
  start.flat[7] = std::nanf("");
  const std::string weights = refusal([&] {
    Training training(network, start, {data, {}, false}, Normalization{{0.3}, {0.3}}, quick());
    training.run_epoch(always);
  });
  EXPECT_NE(weights.find("the weights it started from contain NaN"), std::string::npos) << weights;
}

TEST(Training, AStepThatOverflowsIsNotStoredAsAState) {
  const Dataset data = blob_dataset(20);
  TrainingOptions options = quick();
  options.batch_size = 1000;  // a single step, after which no loss is computed
  options.rate = 1e38;
  options.weight_decay = 1e5;
  options.decay_centre = DecayCentre::zero;
  Network network(small_allcnn());
  Training training(network, fresh_weights(network, 1), {data, {}, false},
                    Normalization{{0.3}, {0.3}}, options);
  const std::string sentence = refusal([&] { training.run_epoch(always); });
  EXPECT_NE(sentence.find("are not finite after epoch 1"), std::string::npos) << sentence;
  EXPECT_TRUE(training.state().weights.flat.isfinite().all().item<bool>());
  EXPECT_TRUE(training.state().history.empty());
}

TEST(TrainingRun, ForceLeavesNothingOfTheRunBefore) {
  const TemporaryFolder folder;
  const Dataset data = blob_dataset(8);
  TrainingRunOptions options{.out = folder / "w.safetensors",
                             .training = quick(),
                             .metadata = {},
                             .keep_epochs = true,
                             .progress = ProgressMode::quiet};
  const auto run = [&] {
    Network network(small_allcnn());
    Weights weights = fresh_weights(network, 1);
    run_training(network, weights, {data, {}, false}, Normalization{{0.3}, {0.3}}, options);
  };
  run();
  EXPECT_TRUE(std::filesystem::exists(epoch_path(options.out, 4)));
  options.force = true;
  options.training.epochs = 2;
  run();
  EXPECT_TRUE(std::filesystem::exists(epoch_path(options.out, 2)));
  EXPECT_FALSE(std::filesystem::exists(epoch_path(options.out, 4)));
}

TEST(TrainingRun, ARunThatLeavesExamplesOutIsNeverTakenForFinished) {
  const TemporaryFolder folder;
  const Dataset data = blob_dataset(8);
  const auto run = [&](std::vector<std::int64_t> excluded, bool resume) {
    Network network(small_allcnn());
    Weights weights = fresh_weights(network, 1);
    return run_training(network, weights, {data, std::move(excluded), false},
                        Normalization{{0.3}, {0.3}},
                        {.out = folder / "w.safetensors",
                         .training = quick(),
                         .metadata = {{"excluded", "2 of 24 training examples"}},
                         .resume = resume,
                         .progress = ProgressMode::quiet});
  };
  run({1, 2}, false);
  EXPECT_NE(refusal([&] {
              run({3, 4}, true);
            }).find("is not known to be the result"),
            std::string::npos);
}

TEST(Training, OptionsOutOfRangeNameTheRule) {
  TrainingOptions options;
  options.rate = -0.1;
  EXPECT_EQ(refusal([&] { check(options); }), "rate: -0.1, must be > 0");
  options = {};
  options.momentum = 1;
  EXPECT_EQ(refusal([&] { check(options); }), "momentum: 1, must be in [0, 1)");
  options = {};
  options.weight_decay = std::nan("");
  EXPECT_EQ(refusal([&] { check(options); }), "weight-decay: nan, must be >= 0");
}

TEST(Training, RecipesSurviveJson) {
  for (const TrainingOptions& options : {pretraining_recipe(), finetuning_recipe()}) {
    EXPECT_EQ(to_json(training_options_from_json(to_json(options))), to_json(options));
  }
}

TEST(Training, AnEpochThatIsAbandonedChangesNothing) {
  const Dataset data = blob_dataset(20);
  Network network(small_allcnn());
  Training training(network, fresh_weights(network, 1), {data, {}, false},
                    Normalization{{0.3}, {0.3}}, quick());
  training.run_epoch(always);
  const std::string before = digest(training.state().weights);
  EXPECT_FALSE(training.run_epoch([](std::int64_t done) { return done < 30; }));
  EXPECT_EQ(digest(training.state().weights), before);
  EXPECT_EQ(training.state().history.size(), 1u);
}

TEST(Evaluation, CountsErrorsAndAveragesTheLoss) {
  const Dataset data = blob_dataset(7);
  const Network network(small_allcnn());
  const Weights weights = fresh_weights(network, 1);
  const Normalization normalization{{0.3}, {0.3}};
  const at::Tensor logits = network.logits(weights, network_inputs(data.images, normalization));
  const Evaluation found = evaluate(network, weights, data, normalization, /*batch_size=*/4);
  EXPECT_EQ(found.wrong, (logits.argmax(1) != data.labels).sum().item<std::int64_t>());
  EXPECT_NEAR(found.loss, at::cross_entropy_loss(logits, data.labels).item<double>(),
              1e-5);
  EXPECT_DOUBLE_EQ(found.error, static_cast<double>(found.wrong) / 21);
}

TEST(TrainingRun, RefusesToOverwriteAndToMixRuns) {
  const TemporaryFolder folder;
  const Dataset data = blob_dataset(8);
  const Normalization normalization{{0.3}, {0.3}};
  const auto run = [&](const TrainingRunOptions& options) {
    Network network(small_allcnn());
    Weights weights = fresh_weights(network, 1);
    return run_training(network, weights, {data, {}, false}, normalization, options);
  };
  TrainingRunOptions options{.out = folder / "w.safetensors",
                             .training = quick(),
                             .metadata = {},
                             .progress = ProgressMode::quiet};
  run(options);
  EXPECT_FALSE(std::filesystem::exists(resume_path(options.out)));
  EXPECT_NE(refusal([&] { run(options); }).find("exists already"), std::string::npos);
  options.resume = true;
  EXPECT_EQ(run(options).status, TrainingRunStatus::already_finished);
  options.training.rate = 0.01;
  EXPECT_NE(refusal([&] { run(options); }).find("is not known to be the result of this very run"),
            std::string::npos);
  options.force = true;
  options.resume = false;
  EXPECT_EQ(run(options).status, TrainingRunStatus::finished);
}

}  // namespace
}  // namespace pumice
