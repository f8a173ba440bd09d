// How differently two models answer: |softmax − softmax'|₁.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "pumice/evaluation/readout.h"
#include "pumice/model/model.h"

namespace pumice {

// Σ_k |π_k(x) − π'_k(x)| for each example, in [0, 2]: inputs N×C×H×W → N values, float64. Throws
// Error if the weights are not the model's. Cost: two forward passes over the inputs.
at::Tensor activation_distances(const Model& model, const Weights& weights,
                                const Weights& reference, const at::Tensor& inputs,
                                std::int64_t batch_size = 256);

// The same along the straight way from w to h: row i holds the distances of w + positions_i (h − w)
// to the reference. K positions → K×N, float64. Cost: K + 1 forward passes over the inputs.
at::Tensor activation_path(const Model& model, const Weights& from, const Weights& to,
                           const Weights& reference, const at::Tensor& inputs,
                           const std::vector<double>& positions, std::int64_t batch_size = 256);

// Mean over the examples of one set, which `set` names ("cohort", "retain", "test").
Readout activation_distance_readout(const std::string& set, const at::Tensor& distances,
                                    const BootstrapOptions& options = {});

}  // namespace pumice
