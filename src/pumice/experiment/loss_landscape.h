// Losses between and around the models of a run (the paper's supplement).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pumice/data/normalization.h"
#include "pumice/experiment/weight_plane.h"
#include "pumice/model/model.h"

namespace pumice {

// Examples that losses are means over.
struct LossExamples {
  at::Tensor inputs;  // N×C×H×W
  at::Tensor labels;  // N
};
// At most `limit` of them, evenly spread over the data set in its order.
LossExamples loss_examples(const Dataset& dataset, const Normalization& normalization,
                           std::int64_t limit);

// Mean cross-entropy. Cost: one forward pass.
double mean_loss(const Model& model, const Weights& weights, const LossExamples& examples);

// Losses at from + position·(to − from), computed in the precision of the weights. Cost: one
// forward pass over the examples for each position.
std::vector<double> losses_along(const Model& model, const Weights& from, const Weights& to,
                                 const std::vector<double>& positions,
                                 const LossExamples& examples);

// loss[i][j] at (x[j], y[i]) of the plane.
struct LossSurface {
  std::vector<double> x, y;
  std::vector<std::vector<double>> loss;
};
// A grid of side×side places that covers the points with a margin of `margin` times their extent on
// each side. Cost: side² forward passes. `progress` is told which share is done and may throw.
LossSurface loss_surface(const Model& model, const Weights& like, const WeightPlane& plane,
                         const std::vector<PlanePoint>& points, const LossExamples& examples,
                         std::int64_t side = 17, double margin = 0.35,
                         const std::function<void(double share)>& progress = {});

// `count` numbers from `low` to `high`, both included; count >= 2.
std::vector<double> evenly_spaced(double low, double high, std::int64_t count);

}  // namespace pumice
