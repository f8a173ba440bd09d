#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "command.h"
#include "npy.h"
#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/model/checkpoint.h"
#include "pumice/model/torchscript_model.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::load_npy;
using testing::refusal;
using testing::run_command;
using testing::save_npy;
using testing::TemporaryFolder;

const std::string reference =
    std::string(PUMICE_PYTHON) + " " PUMICE_SOURCE_DIR "/tests/fixtures/reference_networks.py ";

// A model written by Python's torch.
std::filesystem::path make_model(const TemporaryFolder& folder, const std::string& kind) {
  const std::filesystem::path path = folder / (kind + ".pt");
  const auto result = run_command(reference + "torchscript " + kind + " " + path.string());
  EXPECT_EQ(result.exit_code, 0) << result.error;
  return path;
}

TEST(TorchScriptModelFull, TracedAndScriptedModelsLoadWithTheirWeightsInOrder) {
  const TemporaryFolder folder;
  for (const char* kind : {"trace", "script"}) {
    const auto model = TorchScriptModel::load(make_model(folder, kind));
    EXPECT_EQ(model->layout().total(), 4 * 9 + 4 + 4 + 4 + 12 + 3) << kind;
    EXPECT_EQ(model->layout().entries().front().name, "0.weight");
    EXPECT_EQ(model->layout().entries().back().name, "5.bias");
    EXPECT_EQ(model->buffers().front().first, "1.running_mean");
    EXPECT_EQ(model->logits(model->weights(), torch::rand({5, 1, 8, 8})).sizes(),
              at::IntArrayRef({5, 3}));
  }
}

TEST(TorchScriptModelFull, LogitsFollowTheGivenWeightsAndCarryTheirGradient) {
  const TemporaryFolder folder;
  const auto model = TorchScriptModel::load(make_model(folder, "trace"));
  torch::manual_seed(2);
  const at::Tensor inputs = torch::rand({4, 1, 8, 8});
  const Weights weights = model->weights();
  const at::Tensor before = model->logits(weights, inputs);
  const Weights moved{weights.layout, weights.flat + 0.1};
  EXPECT_GT((model->logits(moved, inputs) - before).abs().max().item<double>(), 1e-3);
  EXPECT_TRUE(torch::equal(model->logits(weights, inputs), before)) << "a call must leave no trace";

  const Weights leaf{weights.layout, weights.flat.clone().requires_grad_()};
  const at::Tensor gradient =
      torch::autograd::grad({model->logits(leaf, inputs).sum()}, {leaf.flat}).front();
  const at::Tensor direction = torch::randn_like(weights.flat);
  const double step = 1e-2;
  const Weights ahead{weights.layout, weights.flat + step * direction};
  const Weights behind{weights.layout, weights.flat - step * direction};
  const double difference =
      (model->logits(ahead, inputs).sum() - model->logits(behind, inputs).sum()).item<double>() /
      (2 * step);
  EXPECT_NEAR(gradient.dot(direction).item<double>(), difference,
              2e-2 * std::abs(difference) + 1e-2);
}

TEST(TorchScriptModelFull, ChannelsLastInputsDoNotDisturbModelsThatUseView) {
  const TemporaryFolder folder;
  const auto model = TorchScriptModel::load(make_model(folder, "view"));
  const at::Tensor inputs = torch::rand({2, 3, 8, 8});
  EXPECT_TRUE(torch::equal(
      model->logits(model->weights(), inputs),
      model->logits(model->weights(), inputs.contiguous(at::MemoryFormat::ChannelsLast))));
}

TEST(TorchScriptModelFull, TheSameWeightsGiveTheSameFile) {
  const TemporaryFolder folder;
  const auto model = TorchScriptModel::load(make_model(folder, "trace"));
  model->save(folder / "first.pt", model->weights(), {});
  model->logits(model->weights(), torch::rand({2, 1, 8, 8}));
  model->save(folder / "second.pt", model->weights(), {});
  EXPECT_EQ(testing::content_of(folder / "first.pt"), testing::content_of(folder / "second.pt"));
  for (const at::Tensor parameter :
       torch::jit::load((folder / "second.pt").string()).parameters()) {
    EXPECT_TRUE(parameter.requires_grad());
  }
}

TEST(TorchScriptModelFull, SharedWeightsAreOneEntryAndTheirGradientsAdd) {
  const TemporaryFolder folder;
  const auto model = TorchScriptModel::load(make_model(folder, "tied"));
  EXPECT_TRUE(model->layout().find("first.weight"));
  EXPECT_FALSE(model->layout().find("second.weight"));
  ASSERT_EQ(
      run_command(reference + "torchscript tied-gradient " + (folder / "g.npz").string()).exit_code,
      0);
  const auto python =
      run_command(std::string(PUMICE_PYTHON) + " -c \"import numpy; g = numpy.load('" +
                  (folder / "g.npz").string() + "'); numpy.save('" + (folder / "g.npy").string() +
                  "', g['first.weight'])\"");
  ASSERT_EQ(python.exit_code, 0) << python.error;
  const Weights leaf{model->shared_layout(), model->weights().flat.requires_grad_()};
  const at::Tensor logits = model->logits(leaf, torch::linspace(-1, 1, 128).view({2, 1, 8, 8}));
  const Weights gradient{leaf.layout, torch::autograd::grad({logits.sum()}, {leaf.flat}).front()};
  EXPECT_TRUE(
      torch::allclose(gradient.tensor("first.weight"), load_npy(folder / "g.npy"), 1e-4, 1e-6));
}

TEST(TorchScriptModelFull, PythonLoadsWhatWasSaved) {
  const TemporaryFolder folder;
  for (const char* kind : {"trace", "tied"}) {
    const auto model = TorchScriptModel::load(make_model(folder, kind));
    const Weights moved{model->shared_layout(), model->weights().flat * 1.5 + 0.01};
    model->save(folder / "saved.pt", moved, {{"note", "scrubbed"}});
    const auto back = TorchScriptModel::load(folder / "saved.pt");
    EXPECT_TRUE(torch::equal(back->weights().flat, moved.flat));
    EXPECT_EQ(back->metadata(), (Metadata{{"note", "scrubbed"}}));
    EXPECT_EQ(model->layout(), back->layout());

    const at::Tensor inputs = torch::rand({3, 1, 8, 8});
    save_npy(folder / "inputs.npy", inputs);
    const auto result =
        run_command(reference + "run-torchscript " + (folder / "saved.pt").string() + " " +
                    (folder / "inputs.npy").string() + " " + (folder / "out.npy").string());
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_TRUE(
        torch::allclose(load_npy(folder / "out.npy"), model->logits(moved, inputs), 1e-4, 1e-5));
  }
}

TEST(TorchScriptModelFull, RefusesModelsItCannotUseWithTheReason) {
  const TemporaryFolder folder;
  const auto sentence = [&](const std::string& kind) {
    const std::filesystem::path path = make_model(folder, kind);
    return refusal([&] {
      const auto model = TorchScriptModel::load(path);
      model->logits(model->weights(), torch::rand({2, 1, 8, 8}));
    });
  };
  EXPECT_NE(sentence("training").find("is in training mode, call model.eval() before saving"),
            std::string::npos);
  EXPECT_NE(sentence("frozen").find("has no parameters, was it frozen?"), std::string::npos);
  EXPECT_NE(sentence("map").find("its output has shape [2, 3, 6, 6] for 2 inputs, must be N×c"),
            std::string::npos);
}

TEST(TorchScriptModelFull, WrongInputsGetOneSentence) {
  const TemporaryFolder folder;
  const auto model = TorchScriptModel::load(make_model(folder, "trace"));
  const std::string sentence = refusal([&] {
    model->logits(model->weights(), torch::rand({2, 3, 8, 8}));
  });
  EXPECT_NE(sentence.find("cannot run on inputs of shape [2, 3, 8, 8]"), std::string::npos)
      << sentence;
  EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '\n'), 0) << sentence;
}

TEST(TorchScriptModel, FilesThatAreNotTorchScriptGetOneSentence) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "zip.pt", "PK\x03\x04 but nothing else");
  const std::string sentence = refusal([&] { open_checkpoint(folder / "zip.pt"); });
  EXPECT_NE(sentence.find("not a TorchScript file"), std::string::npos) << sentence;
  EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '\n'), 0) << sentence;
}

TEST(TorchScriptModelFull, ATracedResNetEqualsTheZoosOwn) {
  const TemporaryFolder folder;
  const std::string body = PUMICE_SOURCE_DIR "/weights/resnet18-w0.4-cifar100.safetensors";
  const auto result =
      run_command(reference + "torchscript resnet18 " + body + ":" + (folder / "r.pt").string());
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Checkpoint zoo = open_checkpoint(body);
  const Checkpoint traced = open_checkpoint(folder / "r.pt");
  torch::manual_seed(1);
  const at::Tensor inputs = torch::randn({3, 3, 32, 32});
  EXPECT_TRUE(torch::allclose(zoo.model->logits(zoo.weights, inputs),
                              traced.model->logits(traced.weights, inputs), 1e-3, 1e-4));
  EXPECT_EQ(zoo.weights.layout->total(), traced.weights.layout->total());
}

}  // namespace
}  // namespace pumice
