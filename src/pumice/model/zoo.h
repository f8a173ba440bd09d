// The networks that Pumice builds itself: All-CNN with batch norm, ResNet-18, and a small MLP for
// tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pumice/model/model.h"

namespace pumice {

// What it takes to build a network of the zoo.
//   allcnn    3×3 convolutions with ⌊96,96,192,192,192,192,192 × width⌋ channels (third and sixth
//   with
//             stride 2), 1×1 to ⌊192 × width⌋, each without bias, then batch norm and ReLU; mean
//             over positions; linear. Width 1, 10 classes: 1,620,010 weights.
//   resnet18  3×3 stem to 64 channels (whatever the width), batch norm, ReLU; four stages of two
//             pre-activation blocks with ⌊64,128,256,512 × width⌋ channels and strides 1,2,2,2;
//             biases on the 3×3 convolutions, none on the 1×1 shortcuts (taken from the activated
//             input where shape changes); mean over positions; linear. Width 0.4, 5 classes:
//             1,787,741 weights.
//   mlp       pixels → ⌊64 × width⌋ → ⌊64 × width⌋ → classes, ReLU between. Needs image_size.
struct Architecture {
  std::string name = "allcnn";
  double width = 1.0;
  std::int64_t input_channels = 3;
  std::int64_t classes = 10;
  std::int64_t image_size = 32;  // fixes the first layer of the MLP; the others take any size

  bool operator==(const Architecture&) const = default;
};

std::vector<std::string> architecture_names();

class Network : public Model, public TrainableStatistics {
 public:
  // Buffers at their start: mean 0, variance 1. Throws Error for an unknown name or a width that
  // leaves a layer without channels.
  explicit Network(Architecture architecture);
  ~Network() override;

  const Architecture& architecture() const { return architecture_; }
  std::shared_ptr<const WeightLayout> shared_layout() const { return layout_; }
  // "linear" or "classifier": the last layer, which a new task replaces.
  const std::string& head() const;
  void set_buffers(const std::vector<NamedTensor>& buffers);  // by name; Error if one is missing

  const WeightLayout& layout() const override { return *layout_; }
  std::vector<NamedTensor> buffers() const override { return buffers_; }
  at::Tensor logits(const Weights& weights, const at::Tensor& inputs) const override;
  void save(const std::filesystem::path& path, const Weights& weights,
            const Metadata& metadata) const override;
  at::Tensor logits_in_training(const Weights& weights, const at::Tensor& inputs) override;

 private:
  Architecture architecture_;
  std::shared_ptr<const WeightLayout> layout_;
  std::vector<NamedTensor> buffers_;
};

// Convolutions: normal with variance 2/(Cout·k²); linear layers and convolution biases: uniform in
// ±1/√fan_in; batch norm: scale 1, shift 0. The head is drawn from the stream "head", the rest from
// "body", so that two networks with the same seed and other bodies share the head.
Weights fresh_weights(const Network& network, std::uint64_t seed);

// Metadata ↔ architecture. `tensors` help where the metadata of a foreign file are silent.
Metadata architecture_metadata(const Architecture& architecture);
Architecture architecture_from_metadata(const std::string& file, const Metadata& metadata,
                                        const std::vector<NamedTensor>& tensors);

}  // namespace pumice
