#include "pumice/model/zoo.h"

#include <ATen/CPUGeneratorImpl.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/core/suggestion.h"
#include "pumice/model/forward_pass.h"

namespace pumice {
namespace {

std::int64_t scaled(std::int64_t channels, double width) {
  // The small term undoes the rounding of products such as 0.29 × 100.
  return static_cast<std::int64_t>(std::floor(static_cast<double>(channels) * width + 1e-9));
}

at::Tensor mean_over_positions(const at::Tensor& x) {
  return x.mean({2, 3});
}

// ---- All-CNN ----

constexpr std::array<std::int64_t, 8> allcnn_channels{96, 96, 192, 192, 192, 192, 192, 192};
constexpr std::array<std::int64_t, 8> allcnn_kernels{3, 3, 3, 3, 3, 3, 3, 1};
constexpr std::array<std::int64_t, 8> allcnn_strides{1, 1, 2, 1, 1, 2, 1, 1};

LayerDeclaration declare_allcnn(const Architecture& architecture) {
  LayerDeclaration layers;
  std::int64_t inputs = architecture.input_channels;
  for (std::size_t i = 0; i < allcnn_channels.size(); ++i) {
    const std::int64_t outputs = scaled(allcnn_channels[i], architecture.width);
    layers.convolution(text("features.", i, ".0"), inputs, outputs, allcnn_kernels[i], false);
    layers.batch_norm(text("features.", i, ".1"), outputs);
    inputs = outputs;
  }
  layers.linear("classifier", inputs, architecture.classes);
  return layers;
}

at::Tensor run_allcnn(const ForwardPass& pass, at::Tensor x) {
  for (std::size_t i = 0; i < allcnn_channels.size(); ++i) {
    x = pass.convolution(text("features.", i, ".0"), x, allcnn_strides[i]);
    x = pass.batch_norm(text("features.", i, ".1"), x).relu_();
  }
  return pass.linear("classifier", mean_over_positions(x));
}

// ---- ResNet-18 ----

constexpr std::array<std::int64_t, 4> resnet_channels{64, 128, 256, 512};
constexpr std::array<std::int64_t, 4> resnet_strides{1, 2, 2, 2};
constexpr std::int64_t resnet_stem_channels = 64;
constexpr int blocks_per_stage = 2;

std::string block_name(std::size_t stage, int block) {
  return text("layer", stage + 1, ".", block);
}

LayerDeclaration declare_resnet18(const Architecture& architecture) {
  LayerDeclaration layers;
  layers.convolution("conv1", architecture.input_channels, resnet_stem_channels, 3, true);
  layers.batch_norm("bn1", resnet_stem_channels);
  std::int64_t inputs = resnet_stem_channels;
  for (std::size_t stage = 0; stage < resnet_channels.size(); ++stage) {
    const std::int64_t outputs = scaled(resnet_channels[stage], architecture.width);
    for (int block = 0; block < blocks_per_stage; ++block) {
      const std::string name = block_name(stage, block);
      const std::int64_t stride = block == 0 ? resnet_strides[stage] : 1;
      layers.batch_norm(name + ".bn1", inputs);
      layers.convolution(name + ".conv1", inputs, outputs, 3, true);
      layers.batch_norm(name + ".bn2", outputs);
      layers.convolution(name + ".conv2", outputs, outputs, 3, true);
      if (stride != 1 || inputs != outputs) {
        layers.convolution(name + ".shortcut.0", inputs, outputs, 1, false);
      }
      inputs = outputs;
    }
  }
  layers.linear("linear", inputs, architecture.classes);
  return layers;
}

at::Tensor run_resnet18(const ForwardPass& pass, at::Tensor x) {
  x = pass.batch_norm("bn1", pass.convolution("conv1", x)).relu_();
  for (std::size_t stage = 0; stage < resnet_channels.size(); ++stage) {
    for (int block = 0; block < blocks_per_stage; ++block) {
      const std::string name = block_name(stage, block);
      const std::int64_t stride = block == 0 ? resnet_strides[stage] : 1;
      const at::Tensor activated = pass.batch_norm(name + ".bn1", x).relu_();
      const at::Tensor shortcut = pass.has(name + ".shortcut.0.weight")
                                      ? pass.convolution(name + ".shortcut.0", activated, stride)
                                      : x;
      x = pass.convolution(name + ".conv1", activated, stride);
      x = pass.convolution(name + ".conv2", pass.batch_norm(name + ".bn2", x).relu_());
      x = x.add_(shortcut);
    }
  }
  return pass.linear("linear", mean_over_positions(x));
}

// ---- MLP ----

LayerDeclaration declare_mlp(const Architecture& architecture) {
  LayerDeclaration layers;
  const std::int64_t hidden = scaled(64, architecture.width);
  const std::int64_t pixels =
      architecture.input_channels * architecture.image_size * architecture.image_size;
  layers.linear("hidden.0", pixels, hidden);
  layers.linear("hidden.1", hidden, hidden);
  layers.linear("classifier", hidden, architecture.classes);
  return layers;
}

at::Tensor run_mlp(const ForwardPass& pass, const at::Tensor& x) {
  // contiguous: channels-last inputs would be flattened in another order.
  const at::Tensor pixels = x.contiguous().flatten(1);
  const at::Tensor hidden = pass.linear("hidden.1", pass.linear("hidden.0", pixels).relu()).relu();
  return pass.linear("classifier", hidden);
}

// ---- the table ----

struct ZooEntry {
  const char* name;
  const char* head;
  LayerDeclaration (*declare)(const Architecture&);
  at::Tensor (*run)(const ForwardPass&, at::Tensor);
};

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries{
      {"allcnn", "classifier", declare_allcnn, run_allcnn},
      {"resnet18", "linear", declare_resnet18, run_resnet18},
      {"mlp", "classifier", declare_mlp,
       [](const ForwardPass& pass, at::Tensor x) { return run_mlp(pass, x); }}};
  return entries;
}

const ZooEntry& zoo_entry(const std::string& name) {
  for (const ZooEntry& entry : zoo()) {
    if (name == entry.name) return entry;
  }
  fail("architecture: '", name, "' is unknown", suggestion(name, architecture_names()));
}

void check(const Architecture& architecture) {
  if (!(architecture.width > 0) || architecture.width > 64) {
    fail("width: ", architecture.width, ", must be in (0, 64]");
  }
  if (architecture.input_channels != 1 && architecture.input_channels != 3) {
    fail("input channels: ", architecture.input_channels, ", must be 1 or 3");
  }
  if (architecture.classes < 2) fail("classes: ", architecture.classes, ", must be >= 2");
  if (scaled(64, architecture.width) < 1) {
    fail("width: ", architecture.width, " leaves a layer without channels, must be >= 1/64");
  }
}

void check_inputs(const Architecture& architecture, const at::Tensor& inputs) {
  if (inputs.dim() != 4 || inputs.size(1) != architecture.input_channels) {
    fail("inputs: shape ", inputs.sizes(), ", must be N×", architecture.input_channels, "×H×W");
  }
  if (architecture.name == "mlp" &&
      (inputs.size(2) != architecture.image_size || inputs.size(3) != architecture.image_size)) {
    fail("inputs: ", inputs.size(2), "×", inputs.size(3), " pixels, this MLP takes ",
         architecture.image_size, "×", architecture.image_size);
  }
}

double number_in(const std::string& file, const Metadata& metadata, const std::string& key) {
  try {
    std::size_t used = 0;
    const double value = std::stod(metadata.at(key), &used);
    if (used == metadata.at(key).size()) return value;
  } catch (const std::exception&) {
  }
  fail(file, ": metadata '", key, "' = '", metadata.at(key), "', must be a number");
}

}  // namespace

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) names.emplace_back(entry.name);
  return names;
}

Network::Network(Architecture architecture) : architecture_(std::move(architecture)) {
  const ZooEntry& entry = zoo_entry(architecture_.name);
  check(architecture_);
  LayerDeclaration layers = entry.declare(architecture_);
  layout_ = std::make_shared<const WeightLayout>(std::move(layers.layout));
  buffers_ = std::move(layers.buffers);
}

Network::~Network() = default;

const std::string& Network::head() const {
  static const std::string linear = "linear";
  static const std::string classifier = "classifier";
  return zoo_entry(architecture_.name).head == linear ? linear : classifier;
}

void Network::set_buffers(const std::vector<NamedTensor>& buffers) {
  for (auto& [name, tensor] : buffers_) {
    const auto found = std::find_if(buffers.begin(), buffers.end(),
                                    [&](const NamedTensor& given) { return given.first == name; });
    if (found == buffers.end()) fail("buffers: '", name, "' is missing");
    if (found->second.sizes() != tensor.sizes()) {
      fail("buffers: '", name, "' has shape ", found->second.sizes(), ", must have ",
           tensor.sizes());
    }
    if (found->second.scalar_type() != at::kFloat) {
      fail("buffers: '", name, "' has type ", found->second.scalar_type(), ", must be float32");
    }
    tensor = found->second.clone();
  }
}

at::Tensor Network::logits(const Weights& weights, const at::Tensor& inputs) const {
  check_inputs(architecture_, inputs);
  const ForwardPass pass(weights, buffers_, BatchNormMode::stored_statistics);
  return zoo_entry(architecture_.name).run(pass, inputs);
}

at::Tensor Network::logits_in_training(const Weights& weights, const at::Tensor& inputs) {
  check_inputs(architecture_, inputs);
  const ForwardPass pass(weights, buffers_, BatchNormMode::batch_statistics);
  return zoo_entry(architecture_.name).run(pass, inputs);
}

void Network::save(const std::filesystem::path& path, const Weights& weights,
                   const Metadata& metadata) const {
  TensorFile file{.tensors = {}, .metadata = metadata};
  file.metadata.merge(architecture_metadata(architecture_));
  const std::vector<at::Tensor> parts = weights.tensors();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    file.tensors.emplace_back(layout_->entries()[i].name, parts[i]);
  }
  file.tensors.insert(file.tensors.end(), buffers_.begin(), buffers_.end());
  write_safetensors(path, file);
}

Weights fresh_weights(const Network& network, std::uint64_t seed) {
  at::Generator body = at::make_generator<at::CPUGeneratorImpl>(stream_seed(seed, "body"));
  at::Generator head = at::make_generator<at::CPUGeneratorImpl>(stream_seed(seed, "head"));
  Weights weights{network.shared_layout(), at::zeros({network.layout().total()})};
  std::int64_t inputs = 1;  // of the layer whose weight came last; its bias needs it
  for (const auto& entry : network.layout().entries()) {
    at::Generator& generator = entry.name.starts_with(network.head() + ".") ? head : body;
    at::Tensor values = weights.flat.narrow(0, entry.offset, entry.count);
    const bool is_bias = entry.name.ends_with(".bias");
    const bool is_norm = entry.shape.size() == 1 && !is_bias;
    if (is_norm) {
      values.fill_(1);
      inputs = 0;  // its shift stays 0
    } else if (entry.shape.size() == 4) {
      const std::int64_t outputs = entry.shape[0] * entry.shape[2] * entry.shape[3];
      values.normal_(0, std::sqrt(2.0 / static_cast<double>(outputs)), generator);
      inputs = entry.shape[1] * entry.shape[2] * entry.shape[3];
    } else if (entry.shape.size() == 2 || inputs > 0) {
      if (entry.shape.size() == 2) inputs = entry.shape[1];
      const double bound = 1 / std::sqrt(static_cast<double>(inputs));
      values.uniform_(-bound, bound, generator);
    }
  }
  return weights;
}

Metadata architecture_metadata(const Architecture& architecture) {
  return {{"architecture", architecture.name},
          {"width", nlohmann::json(architecture.width).dump()},
          {"input_channels", std::to_string(architecture.input_channels)},
          {"classes", std::to_string(architecture.classes)},
          {"image_size", std::to_string(architecture.image_size)}};
}

Architecture architecture_from_metadata(const std::string& file, const Metadata& metadata,
                                        const std::vector<NamedTensor>& tensors) {
  for (const char* key : {"architecture", "width", "classes"}) {
    if (!metadata.contains(key))
      fail(file, ": metadata '", key, "' is missing, it names the network");
  }
  Architecture architecture;
  architecture.name = metadata.at("architecture");
  architecture.width = number_in(file, metadata, "width");
  architecture.classes = static_cast<std::int64_t>(number_in(file, metadata, "classes"));
  if (metadata.contains("image_size")) {
    architecture.image_size = static_cast<std::int64_t>(number_in(file, metadata, "image_size"));
  }
  if (metadata.contains("input_channels")) {
    architecture.input_channels =
        static_cast<std::int64_t>(number_in(file, metadata, "input_channels"));
  } else {
    // The first convolution knows.
    for (const auto& [name, tensor] : tensors) {
      if (tensor.dim() != 4) continue;
      architecture.input_channels = tensor.size(1);
      break;
    }
  }
  return architecture;
}

}  // namespace pumice
