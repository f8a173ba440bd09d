// The image whose answer tells most about the difference between a model and the retrained one.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "pumice/data/normalization.h"
#include "pumice/model/model.h"
#include "pumice/model/weight_distribution.h"

namespace pumice {

// What images may be, in network inputs; both broadcast to C×H×W.
struct ImageBox {
  at::Tensor low, high;
};
// Pixels from 0 to 255. Throws Error for an empty normalisation: float images know no bounds.
ImageBox pixel_box(const Normalization& normalization);

// The quadratic term of the black-box bound of one query,
//   Q(x) = ½ Δfᵀ (S'(x) + τ²I)⁻¹ Δf,   Δf = f_h(x) − f_m0(x),   S' = J' Σ0 J'ᵀ at m0.
// As Q = max over a of aᵀΔf − ½ aᵀ(S' + τ²I)a, its gradient is that with a = (S' + τ²I)⁻¹Δf held
// fixed:  ∇_x [ aᵀΔf(x) − ½ |Σ0^½ ∇_w(aᵀ f_m0(x))|² ].
struct QueryValue {
  double nats = 0;          // Q; infinite if S' + τ²I is singular to working precision
  at::Tensor gradient;      // C×H×W; undefined if Q is infinite or no gradient was asked for
  std::string reason = {};  // why it is infinite
};

// image C×H×W. Cost: c passes back with all gradients, and for Q's gradient a double backward pass.
// Throws Error if the two models have different parameters or τ < 0.
QueryValue query_value(const Model& model, const Weights& scrubbed,
                       const WeightDistribution& reference, const at::Tensor& image, double floor,
                       bool with_gradient = true);

struct AdversarialQueryOptions {
  double floor = 0;  // τ >= 0
  std::int64_t max_iterations = 50;
  double first_step = 0.1;      // largest change of a pixel, as a share of its range
  double smallest_step = 1e-4;  // stop when no step of this size helps
};

struct AdversarialQuery {
  at::Tensor image;                 // C×H×W, in the box
  double nats = 0, start_nats = 0;  // Q there and at the start; nats >= start_nats
  double largest_change = 0;        // of a pixel, as a share of its range
  std::int64_t iterations = 0;      // steps that were taken
  std::int64_t evaluations = 0;     // of Q
  std::string reason = {};          // why Q is infinite at the start, and nothing was searched
};

// Projected gradient ascent from `start` (clamped to the box): a step along the gradient, scaled so
// that the largest change is the step's size, is taken only if Q rises; the size then doubles, and
// halves otherwise.
AdversarialQuery find_adversarial_query(const Model& model, const Weights& scrubbed,
                                        const WeightDistribution& reference,
                                        const at::Tensor& start, const ImageBox& box,
                                        const AdversarialQueryOptions& options = {});

}  // namespace pumice
