#include "pumice/data/normalization.h"

#include "pumice/core/error.h"

namespace pumice {

Normalization measure_normalization(const Dataset& dataset) {
  Normalization normalization;
  if (dataset.images.scalar_type() != at::kByte) return normalization;
  // Channel by channel in float64: one plane at a time in memory, sums that do not drift.
  for (std::int64_t channel = 0; channel < dataset.images.size(1); ++channel) {
    const at::Tensor values = dataset.images.select(1, channel).to(at::kDouble).div_(255);
    const double mean = values.mean().item<double>();
    const double deviation = (values - mean).square_().mean().sqrt().item<double>();
    if (deviation == 0) fail("images: channel ", channel, " is constant, it cannot be normalised");
    normalization.mean.push_back(mean);
    normalization.deviation.push_back(deviation);
  }
  return normalization;
}

at::Tensor network_inputs(const at::Tensor& images, const Normalization& normalization) {
  const bool bytes = images.scalar_type() == at::kByte;
  if (!bytes && !normalization.empty()) {
    fail("normalisation: given, but float32 images are used as they are");
  }
  if (bytes && normalization.mean.size() != static_cast<std::size_t>(images.size(1))) {
    fail("normalisation: for ", normalization.mean.size(), " channels, but the images have ",
         images.size(1));
  }
  at::Tensor inputs = images.to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
  if (!bytes) return inputs;
  const at::Tensor mean = at::tensor(normalization.mean, at::kFloat).view({1, -1, 1, 1});
  const at::Tensor deviation = at::tensor(normalization.deviation, at::kFloat).view({1, -1, 1, 1});
  return inputs.div(255).sub_(mean).div_(deviation);
}

}  // namespace pumice
