// What the last layer reads: the features by which a classifier tells examples apart.
#pragma once

#include <ATen/ATen.h>

#include "pumice/data/input_source.h"
#include "pumice/model/model.h"

namespace pumice {

// Inputs of the weight matrix that is nearest to the logits, one row for each example (N×d; values
// of all its positions side by side). The logits themselves if no rule finds such a matrix. Cost:
// one forward pass.
at::Tensor last_layer_inputs(const Model& model, const Weights& weights, const InputSource& inputs);

}  // namespace pumice
