// Small made-up data sets: each class is a bright blob at a place of its own, plus noise.
#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "pumice/data/dataset.h"

namespace pumice::testing {

inline Dataset blob_dataset(std::int64_t per_class, std::int64_t classes = 3,
                            std::int64_t channels = 1, std::int64_t size = 8,
                            std::uint64_t seed = 1) {
  torch::manual_seed(seed);
  const std::int64_t count = per_class * classes;
  Dataset data;
  at::Tensor images = torch::rand({count, channels, size, size}) * 120;
  data.labels = torch::arange(count, at::kLong) % classes;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i % classes;
    images[i].narrow(1, 2 * label % (size - 1), 2).narrow(2, 3 * label % (size - 1), 2) += 130;
    data.ids.push_back("train/" + std::to_string(i));
  }
  data.images = images.clamp(0, 255).to(at::kByte);
  for (std::int64_t k = 0; k < classes; ++k) {
    data.classes.names.push_back("class " + std::to_string(k));
    data.classes.original_labels.push_back(k);
  }
  return data;
}

}  // namespace pumice::testing
