#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "command.h"
#include "npy.h"
#include "pumice/core/error.h"
#include "pumice/model/checkpoint.h"
#include "pumice/model/zoo.h"
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

TEST(Zoo, WeightCountsAreThoseOfThePublishedNetworks) {
  EXPECT_EQ(Network({.name = "resnet18", .width = 0.4, .classes = 5}).layout().total(), 1'787'741);
  EXPECT_EQ(Network({.name = "allcnn", .width = 1, .classes = 10}).layout().total(), 1'620'010);
}

TEST(Zoo, OneInputChannelAndAnySizeWork) {
  for (const char* name : {"allcnn", "resnet18"}) {
    const Network network({.name = name, .width = 0.1, .input_channels = 1, .classes = 4});
    const Weights weights = fresh_weights(network, 1);
    EXPECT_EQ(network.logits(weights, torch::rand({3, 1, 28, 28})).sizes(),
              at::IntArrayRef({3, 4}));
    EXPECT_EQ(network.logits(weights, torch::rand({2, 1, 17, 17})).sizes(),
              at::IntArrayRef({2, 4}));
  }
}

TEST(Zoo, BadArchitecturesAreRefusedWithTheRule) {
  EXPECT_EQ(refusal([] { Network({.name = "resnet"}); }),
            "architecture: 'resnet' is unknown, did you mean 'resnet18'?");
  EXPECT_EQ(refusal([] { Network({.name = "allcnn", .width = 0}); }),
            "width: 0, must be in (0, 64]");
  EXPECT_EQ(refusal([] { Network({.name = "allcnn", .width = 0.001}); }),
            "width: 0.001 leaves a layer without channels, must be >= 1/64");
  EXPECT_EQ(refusal([] { Network({.name = "allcnn", .classes = 1}); }), "classes: 1, must be >= 2");
  EXPECT_EQ(refusal([] {
              const Network network({.name = "allcnn", .width = 0.1});
              network.logits(fresh_weights(network, 1), torch::rand({1, 1, 32, 32}));
            }),
            "inputs: shape [1, 1, 32, 32], must be N×3×H×W");
}

TEST(Zoo, TheSameSeedGivesTheSameWeightsAndTheSameHeadForOtherBodies) {
  const Network wide({.name = "allcnn", .width = 0.2, .classes = 5});
  const Network grey({.name = "allcnn", .width = 0.2, .input_channels = 1, .classes = 5});
  EXPECT_TRUE(torch::equal(fresh_weights(wide, 3).flat, fresh_weights(wide, 3).flat));
  EXPECT_FALSE(torch::equal(fresh_weights(wide, 3).flat, fresh_weights(wide, 4).flat));
  EXPECT_TRUE(torch::equal(fresh_weights(wide, 3).tensor("classifier.weight"),
                           fresh_weights(grey, 3).tensor("classifier.weight")));
}

TEST(Zoo, FreshWeightsHaveTheirStatedSpread) {
  const Network network({.name = "resnet18", .width = 1, .classes = 10});
  const Weights weights = fresh_weights(network, 1);
  EXPECT_NEAR(weights.tensor("layer3.0.conv2.weight").std().item<double>(),
              std::sqrt(2.0 / (256 * 9)), 2e-4);
  EXPECT_LE(weights.tensor("linear.bias").abs().max().item<double>(), 1 / std::sqrt(512.0));
  EXPECT_GT(weights.tensor("linear.bias").abs().max().item<double>(), 0);
  EXPECT_TRUE((weights.tensor("bn1.weight") == 1).all().item<bool>());
  EXPECT_TRUE((weights.tensor("bn1.bias") == 0).all().item<bool>());
  EXPECT_GT(weights.tensor("conv1.bias").abs().max().item<double>(), 0);
}

TEST(Zoo, ExamplesDoNotDependOnEachOther) {
  torch::manual_seed(1);
  const Network network({.name = "resnet18", .width = 0.1, .classes = 3});
  const Weights weights{network.shared_layout(), fresh_weights(network, 1).flat.to(at::kDouble)};
  const at::Tensor inputs = torch::rand({5, 3, 16, 16}, at::kDouble);
  const at::Tensor together = network.logits(weights, inputs);
  const at::Tensor alone = network.logits(weights, inputs.narrow(0, 2, 1));
  EXPECT_TRUE(torch::allclose(together.narrow(0, 2, 1), alone, 1e-12, 1e-12));
}

TEST(Zoo, TheGradientInTheFlatVectorEqualsDifferencesOfLogits) {
  torch::manual_seed(1);
  for (const char* name : {"allcnn", "resnet18", "mlp"}) {
    const Network network(
        {.name = name, .width = 0.05, .input_channels = 1, .classes = 3, .image_size = 9});
    // Fresh batch-norm shifts are 0, right on the kink of ReLU for a dead channel: move off it.
    const at::Tensor fresh = fresh_weights(network, 1).flat.to(at::kDouble);
    const at::Tensor flat = fresh + 0.05 * torch::randn_like(fresh);
    const at::Tensor inputs = torch::rand({2, 1, 9, 9}, at::kDouble);
    const at::Tensor direction = torch::randn_like(flat);
    const auto value = [&](const at::Tensor& w) {
      return network.logits({network.shared_layout(), w}, inputs).select(1, 0).sum();
    };
    const at::Tensor leaf = flat.clone().requires_grad_();
    const at::Tensor gradient = torch::autograd::grad({value(leaf)}, {leaf}).front();
    const double step = 1e-8;
    const double difference =
        ((value(flat + step * direction) - value(flat - step * direction)) / (2 * step))
            .item<double>();
    EXPECT_NEAR(gradient.dot(direction).item<double>(), difference,
                1e-4 * std::abs(difference) + 1e-6)
        << name;
  }
}

TEST(Zoo, ChannelsLastAndDefaultLayoutAgree) {
  torch::manual_seed(1);
  for (const char* name : {"allcnn", "mlp"}) {
    const Network network({.name = name, .width = 0.2, .classes = 3, .image_size = 12});
    const Weights weights = fresh_weights(network, 1);
    const at::Tensor inputs = torch::rand({4, 3, 12, 12});
    EXPECT_TRUE(torch::allclose(
        network.logits(weights, inputs),
        network.logits(weights, inputs.contiguous(at::MemoryFormat::ChannelsLast)), 1e-4, 1e-5));
  }
}

TEST(Zoo, TrainingModeMovesTheStoredStatisticsByATenth) {
  torch::manual_seed(1);
  Network network({.name = "allcnn", .width = 0.1, .classes = 3});
  const Weights weights = fresh_weights(network, 1);
  const at::Tensor inputs = torch::rand({6, 3, 8, 8});
  const at::Tensor expected =
      0.1 * at::conv2d(inputs, weights.tensor("features.0.0.weight"), {}, 1, 1).mean({0, 2, 3});
  network.logits(weights, inputs);
  EXPECT_TRUE((network.buffers()[0].second == 0).all().item<bool>())
      << "evaluation must not move them";
  network.logits_in_training(weights, inputs);
  EXPECT_TRUE(torch::allclose(network.buffers()[0].second, expected, 1e-4, 1e-6));
}

TEST(ZooFull, LogitsOfTheShippedBodiesEqualThePythonReference) {
  torch::manual_seed(1);
  for (const auto& [file, channels, size] :
       {std::tuple{"resnet18-w0.4-cifar100.safetensors", 3, 32},
        std::tuple{"fashion-mnist-allcnn-w0.25.safetensors", 1, 28}}) {
    const TemporaryFolder folder;
    const std::string path = std::string(PUMICE_SOURCE_DIR "/weights/") + file;
    const Checkpoint checkpoint = open_checkpoint(path);
    const at::Tensor inputs = torch::randn({6, channels, size, size});
    save_npy(folder / "inputs.npy", inputs);
    const auto result =
        run_command(reference + "logits " + path + " " + (folder / "inputs.npy").string() + " " +
                    (folder / "logits.npy").string());
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const at::Tensor expected = load_npy(folder / "logits.npy");
    const at::Tensor found = checkpoint.model->logits(checkpoint.weights, inputs);
    EXPECT_LT((found - expected).abs().max().item<double>(),
              1e-4 * expected.abs().max().item<double>())
        << file;
  }
}

TEST(Checkpoint, WeightsBuffersAndMetadataComeBack) {
  const TemporaryFolder folder;
  torch::manual_seed(1);
  Network network({.name = "resnet18", .width = 0.1, .input_channels = 1, .classes = 3});
  const Weights weights = fresh_weights(network, 1);
  network.logits_in_training(weights, torch::rand({4, 1, 8, 8}));
  Metadata metadata;
  store(metadata, Normalization{{0.25}, {0.5}});
  DataRequest request;
  request.spec = "cifar10";
  request.selection.classes = "0-4";
  request.selection.per_class = 100;
  store(metadata, request);
  network.save(folder / "w.safetensors", weights, metadata);
  const Checkpoint back = open_checkpoint(folder / "w.safetensors");
  EXPECT_EQ(digest(*back.model, back.weights), digest(network, weights));
  EXPECT_EQ(dynamic_cast<Network&>(*back.model).architecture(), network.architecture());
  EXPECT_EQ(stored_normalization(back.metadata), (Normalization{{0.25}, {0.5}}));
  EXPECT_EQ(to_json(stored_data_request(back.metadata).value()), to_json(request));
}

TEST(Checkpoint, RefusesWhatDoesNotFitTogether) {
  const TemporaryFolder folder;
  const std::string path = (folder / "w.safetensors").string();
  const Network network(
      {.name = "mlp", .width = 0.2, .input_channels = 1, .classes = 3, .image_size = 4});
  network.save(path, fresh_weights(network, 1), {});
  const TensorFile good = read_safetensors(path);
  const auto refused = [&](const std::function<void(TensorFile&)>& damage) {
    TensorFile file = good;
    damage(file);
    write_safetensors(path, file);
    return refusal([&] { open_checkpoint(path); });
  };
  EXPECT_EQ(refused([](TensorFile&) {}), "accepted");
  EXPECT_EQ(refused([](TensorFile& file) { file.metadata.erase("architecture"); }),
            path + ": metadata 'architecture' is missing, it names the network");
  EXPECT_EQ(refused([](TensorFile& file) { file.metadata["width"] = "wide"; }),
            path + ": metadata 'width' = 'wide', must be a number");
  EXPECT_EQ(refused([](TensorFile& file) { file.tensors.pop_back(); }),
            path + ": weights: parameter 'classifier.bias' is missing");
  EXPECT_EQ(refused([](TensorFile& file) { file.metadata["classes"] = "4"; }),
            path + ": weights: parameter 'classifier.weight' has shape [3, 12], must have [4, 12]");
  EXPECT_EQ(
      refused([](TensorFile& file) { file.tensors.emplace_back("extra", torch::zeros({1})); }),
      path + ": has 7 tensors, mlp has 6");
  EXPECT_EQ(refused([](TensorFile& file) {
              for (auto& [name, tensor] : file.tensors) tensor = tensor.to(at::kDouble);
            }),
            path + ": weights: parameter 'hidden.0.weight' has type Double, must be float32");
  EXPECT_EQ(refused([](TensorFile& file) {
              file.tensors[2].second = file.tensors[2].second.to(at::kHalf);
            }),
            path + ": weights: parameter 'hidden.1.weight' has type Half, must be float32");
  EXPECT_EQ(refusal([&] { open_checkpoint(folder / "none.safetensors"); }),
            (folder / "none.safetensors").string() + ": cannot be read, No such file or directory");
}

}  // namespace
}  // namespace pumice
