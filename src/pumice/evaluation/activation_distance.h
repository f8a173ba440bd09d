// How differently two models answer: |softmax − softmax'|₁.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "pumice/evaluation/readout.h"
#include "pumice/model/model.h"

namespace pumice {

// π(x) for each example: inputs N×C×H×W → N×c, float64. Throws Error if the weights are not the
// model's or there are no examples. Cost: one forward pass over the inputs.
at::Tensor softmax_outputs(const Model& model, const Weights& weights, const at::Tensor& inputs,
                           std::int64_t batch_size = 256);

// The same along the straight way from w to h, at w + positions_i (h − w): K positions → K×N×c.
// Cost: K forward passes over the inputs.
at::Tensor softmax_outputs_along(const Model& model, const Weights& from, const Weights& to,
                                 const at::Tensor& inputs, const std::vector<double>& positions,
                                 std::int64_t batch_size = 256);

// Σ_k |π_k(x) − π'_k(x)| for each example, in [0, 2]: outputs N×c (or K×N×c) and N×c → N (or K×N).
// Throws Error unless both are to the same examples.
at::Tensor activation_distances(const at::Tensor& outputs, const at::Tensor& reference_outputs);

// Mean over the examples of one set, which `set` names ("cohort", "retain", "test").
Readout activation_distance_readout(const std::string& set, const at::Tensor& distances,
                                    const BootstrapOptions& options = {});

}  // namespace pumice
