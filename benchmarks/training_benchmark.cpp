// How fast does training run, as a share of what the machine's matrix product can do?
//
// FLOPs counted: two for each multiply-add of the convolutions and the last layer, once forward and
// twice backward (inputs and weights; the first layer needs no input gradient). Batch norm, ReLU,
// the loss and the optimiser step are not counted: they are overhead.
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>

#include "machine.h"
#include "pumice/linalg/threads.h"
#include "pumice/model/training.h"
#include "pumice/model/zoo.h"

namespace {

using namespace pumice;
using nlohmann::json;

// Height (= width) of a layer's output; strides halve it.
std::int64_t output_size(const Architecture& architecture, const std::string& layer) {
  std::int64_t halvings = 0;
  if (architecture.name == "resnet18" && layer.starts_with("layer")) halvings = layer[5] - '1';
  if (architecture.name == "allcnn") {
    const int position = layer[9] - '0';  // "features.N"
    halvings = position < 2 ? 0 : position < 5 ? 1 : 2;
  }
  return architecture.image_size >> halvings;
}

struct Flops {
  double forward = 0;   // for one image
  double training = 0;  // forward and backward
};

Flops count_flops(const Network& network) {
  Flops flops;
  bool first = true;
  for (const auto& entry : network.layout().entries()) {
    if (entry.shape.size() < 2) continue;
    double positions = 1;
    if (entry.shape.size() == 4) {
      const auto size = static_cast<double>(output_size(network.architecture(), entry.name));
      positions = size * size;
    }
    const double forward = 2 * static_cast<double>(entry.count) * positions;
    flops.forward += forward;
    flops.training += forward * (first ? 2 : 3);
    first = false;
  }
  return flops;
}

Dataset random_images(const Architecture& architecture, std::int64_t count) {
  torch::manual_seed(1);
  Dataset data;
  data.images = torch::randint(0, 256,
                               {count, architecture.input_channels, architecture.image_size,
                                architecture.image_size})
                    .to(at::kByte);
  data.labels = torch::randint(0, architecture.classes, {count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) data.ids.push_back("train/" + std::to_string(i));
  for (std::int64_t k = 0; k < architecture.classes; ++k) {
    data.classes.names.push_back(std::to_string(k));
    data.classes.original_labels.push_back(k);
  }
  return data;
}

json measure(const Architecture& architecture, std::int64_t batch, int repeats) {
  Network network(architecture);
  const Weights start = fresh_weights(network, 1);
  const Dataset data = random_images(architecture, 4 * batch);
  const Normalization normalization = measure_normalization(data);
  const Flops flops = count_flops(network);
  const double sgemm = benchmark::sgemm_rate();
  const auto entry = [&](double seconds, double flops_per_image) {
    const double rate = static_cast<double>(data.size()) / seconds;
    return json{{"images_per_second", rate},
                {"gflops", rate * flops_per_image / 1e9},
                {"share_of_sgemm", rate * flops_per_image / sgemm}};
  };
  const auto training_seconds = [&](bool statistics) {
    TrainingOptions options = finetuning_recipe();
    options.batch_size = batch;
    options.rate = 1e-4;
    options.epochs = 1000;
    options.epochs_after_zero_error.reset();  // no evaluation: training alone is measured
    options.update_statistics = statistics;
    Training training(network, start, {data, {}, false}, normalization, options);
    return benchmark::median_seconds([&] { training.run_epoch([](std::int64_t) { return true; }); },
                                     repeats);
  };
  return {{"architecture", architecture.name},
          {"width", architecture.width},
          {"weights", network.layout().total()},
          {"classes", architecture.classes},
          {"batch", batch},
          {"mflop_forward_per_image", flops.forward / 1e6},
          {"sgemm_gflops", sgemm / 1e9},
          {"finetuning", entry(training_seconds(false), flops.training)},
          {"pretraining", entry(training_seconds(true), flops.training)},
          {"evaluation", entry(benchmark::median_seconds(
                                   [&] { evaluate(network, start, data, normalization); }, repeats),
                               flops.forward)}};
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::start_like_the_tool(arguments);
  if (count > 1) set_threads(std::atoi(arguments[1]));
  json report{{"benchmark", "training"}, {"machine", benchmark::machine_description()}};
  report["results"] = {
      measure({.name = "resnet18", .width = 0.4, .input_channels = 3, .classes = 5}, 128, 3),
      measure({.name = "allcnn", .width = 1.0, .input_channels = 3, .classes = 10}, 128, 3),
      measure(
          {.name = "allcnn", .width = 0.25, .input_channels = 1, .classes = 5, .image_size = 28},
          128, 3)};
  std::printf("%s\n", report.dump(2).c_str());
}
