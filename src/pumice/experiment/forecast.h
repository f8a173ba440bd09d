// How long steps will take and how much memory they need: a forecast, not a promise.
#pragma once

#include <cstdint>
#include <optional>

#include "pumice/model/model.h"

namespace pumice {

// Training reaches about this share of the rate of large matrix products
// (docs/results/training.md: 45 to 63 %).
constexpr double training_share_of_product_rate = 0.45;

struct WorkForecast {
  double epoch_seconds = 0;   // one training epoch on all examples
  double kernel_seconds = 0;  // one kernel of all examples
  std::int64_t kernel_bytes = 0;
  std::int64_t training_bytes = 0;  // activations of one batch, and vectors of weights
};

// From the network's FLOPs at rates that are measured for about half a second. inputs N×C×H×W.
WorkForecast forecast_work(const Model& model, const Weights& weights, const at::Tensor& inputs,
                           std::int64_t batch_size, std::optional<std::int64_t> memory);

}  // namespace pumice
