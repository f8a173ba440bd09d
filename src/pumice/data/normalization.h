// From pixels to network inputs.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "pumice/data/dataset.h"

namespace pumice {

// input = (pixel/255 − mean) / deviation, per channel, for uint8 images; float32 images are used as
// they are and the normalisation must be empty.
struct Normalization {
  std::vector<double> mean;
  std::vector<double> deviation;

  bool empty() const { return mean.empty(); }
  bool operator==(const Normalization&) const = default;
};

// Mean and standard deviation of each channel over all pixels; empty for float32 images.
Normalization measure_normalization(const Dataset& dataset);

// float32 N×C×H×W in channels-last layout. Throws Error if the channels do not match.
at::Tensor network_inputs(const at::Tensor& images, const Normalization& normalization);

}  // namespace pumice
