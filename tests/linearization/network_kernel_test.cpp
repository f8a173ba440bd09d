#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "command.h"
#include "npy.h"
#include "pumice/linearization/linearization.h"
#include "pumice/model/checkpoint.h"
#include "pumice/model/torchscript_model.h"
#include "small_models.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::load_npy;
using testing::run_command;
using testing::save_npy;
using testing::TemporaryFolder;

const std::string reference =
    std::string(PUMICE_PYTHON) + " " PUMICE_SOURCE_DIR "/tests/fixtures/reference_networks.py ";

double relative(const at::Tensor& value, const at::Tensor& expected) {
  return ((value - expected).norm() / expected.norm()).item<double>();
}

// Fresh weights, and statistics that are not those of a fresh network.
std::shared_ptr<Network> network_with_statistics(const Architecture& architecture) {
  auto network = std::make_shared<Network>(architecture);
  torch::manual_seed(4);
  std::vector<NamedTensor> buffers = network->buffers();
  for (auto& [name, tensor] : buffers) tensor = torch::rand_like(tensor) + 0.5;
  network->set_buffers(buffers);
  return network;
}

class NetworkKernelFull : public ::testing::TestWithParam<const char*> {};

TEST_P(NetworkKernelFull, EqualsTheOneThatPythonComputesFromTheWholeJacobian) {
  const TemporaryFolder folder;
  const auto network =
      network_with_statistics({.name = GetParam(), .width = 0.1, .classes = 3, .image_size = 16});
  const Weights weights = fresh_weights(*network, 5);
  const at::Tensor inputs = torch::randn({4, 3, 16, 16});
  network->save(folder / "w.safetensors", weights, {});
  save_npy(folder / "x.npy", inputs);
  const auto run = run_command(reference + "kernel " + (folder / "w.safetensors").string() + " " +
                               (folder / "x.npy").string() + " " + (folder / "k.npy").string());
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const at::Tensor expected = load_npy(folder / "k.npy");

  const at::Tensor channels_last = inputs.contiguous(at::MemoryFormat::ChannelsLast);
  const Linearization narrow(*network, weights, channels_last);
  EXPECT_TRUE(narrow.without_rule().empty());
  EXPECT_LT(relative(narrow.kernel().theta, expected), 1e-4);
  const Linearization wide(*network, {weights.layout, weights.flat.to(at::kDouble)}, channels_last);
  for (const Contraction contraction : {Contraction::explicit_rows, Contraction::hadamard,
                                        Contraction::class_sharing, Contraction::linear_tail}) {
    EXPECT_LT(relative(wide.kernel({.contraction = contraction}).theta, expected), 1e-10)
        << contraction_name(contraction);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, NetworkKernelFull, ::testing::Values("resnet18", "allcnn"));

TEST(NetworkKernelWideFull, RoundingInALargeFreshNetworkIsNotTakenForAWrongRule) {
  // Sums over 1,024 positions of a network whose statistics fit nothing: in float32 they cancel to
  // a few digits.
  const Network network({.name = "resnet18", .width = 1, .classes = 10});
  const Linearization linearization(network, fresh_weights(network, 1),
                                    torch::randn({3, 3, 32, 32}));
  EXPECT_TRUE(linearization.without_rule().empty());
}

TEST(TorchScriptKernelFull, ATracedNetworkHasTheKernelOfTheSameNetworkFromTheZoo) {
  const TemporaryFolder folder;
  const auto network = network_with_statistics({.name = "resnet18", .width = 0.1, .classes = 3});
  const Weights weights = fresh_weights(*network, 5);
  network->save(folder / "w.safetensors", weights, {});
  const auto run =
      run_command(reference + "torchscript resnet18 " + (folder / "w.safetensors").string() + ":" +
                  (folder / "w.pt").string());
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto traced = TorchScriptModel::load(folder / "w.pt");
  const at::Tensor inputs = torch::randn({4, 3, 32, 32});
  const Linearization ours(*network, weights, inputs.contiguous(at::MemoryFormat::ChannelsLast));
  const Linearization theirs(*traced, traced->weights(), inputs);
  EXPECT_TRUE(theirs.without_rule().empty());
  EXPECT_LT(relative(theirs.kernel().theta, ours.kernel().theta), 1e-4);
  const Linearization wide(
      *traced, {traced->shared_layout(), traced->weights().flat.to(at::kDouble)}, inputs);
  EXPECT_LT(relative(theirs.kernel().theta, wide.kernel().theta), 1e-4);
  const at::Tensor direction = torch::randn({ours.columns()});
  // The two list their parameters in different orders, so products are compared with their own
  // transposes.
  const at::Tensor cotangents = torch::randn({4, 3});
  EXPECT_NEAR(theirs.jvp(direction).flatten().dot(cotangents.flatten()).item<double>(),
              theirs.vjp(cotangents).dot(direction).item<double>(), 1e-2);
}

TEST(TorchScriptKernelFull, TiedWeightsOfATorchScriptModelAddBeforeTheProduct) {
  const TemporaryFolder folder;
  const auto run = run_command(reference + "torchscript tied " + (folder / "tied.pt").string());
  ASSERT_EQ(run.exit_code, 0) << run.error;
  const auto model = TorchScriptModel::load(folder / "tied.pt");
  const Weights weights = model->weights();
  const at::Tensor inputs = torch::randn({4, 1, 8, 8});
  const at::Tensor jacobian = testing::dense_jacobian(*model, weights, inputs).to(at::kDouble);
  const Linearization linearization(*model, weights, inputs);
  EXPECT_LT(relative(linearization.kernel().theta, jacobian.mm(jacobian.t())), 1e-4)
      << linearization.kernel().summary.full();
}

}  // namespace
}  // namespace pumice
