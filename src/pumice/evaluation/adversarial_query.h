// The image whose answer tells most about the difference between a model and the retrained one.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/normalization.h"
#include "pumice/linearization/linearization.h"
#include "pumice/model/model.h"
#include "pumice/model/weight_distribution.h"

namespace pumice {

// What images may be, in network inputs; both broadcast to C×H×W.
struct ImageBox {
  at::Tensor low, high;
};
// Pixels from 0 to 255. Throws Error for an empty normalisation: float images know no bounds.
ImageBox pixel_box(const Normalization& normalization);

// Q at one image.
struct QueryValue {
  double nats = 0;          // infinite if S' + τ²I is singular to working precision
  at::Tensor coefficients;  // a, c values in float64; undefined if Q is infinite
  std::string reason = {};  // why it is infinite
};

// The quadratic term of the black-box bound of one query, as a function of the image:
//   Q(x) = ½ Δfᵀ (S'(x) + τ²I)⁻¹ Δf,   Δf = f_h(x) − f_m0(x),   S' = J' Σ0 J'ᵀ at m0.
class QueryObjective {
 public:
  // `linearization` is that of the reference, at its mean; its inputs do not matter. Throws Error
  // if the two models have different parameters or τ < 0. The linearisation's model, which also
  // gives the scrubbed model's answers, must outlive this object.
  QueryObjective(const Linearization& linearization, const Weights& scrubbed,
                 const WeightDistribution& reference, double floor);

  // Of n images at once: two forward passes, c passes back and the rows of the Jacobian.
  std::vector<QueryValue> values(const at::Tensor& images) const;

  // Of one image (C×H×W) where Q is finite. As Q = max over a of aᵀΔf − ½ aᵀ(S' + τ²I)a, it is the
  // gradient of that with a held fixed, and since ½|Σ0^½ ∇_w(aᵀf)|² has the gradient of the tangent
  // aᵀ J'(x) v with v = Σ0 ∇_w(aᵀf) held fixed,
  //   ∇Q = ∇_x [ aᵀ f_h(x) − aᵀ f_m0(x) − aᵀ J'(x) v ].
  // One image at a time, since each has a v of its own: one pass back for v, one forwards with
  // tangents, and one back through both.
  at::Tensor gradient(const at::Tensor& image, const QueryValue& value) const;

 private:
  Weights scrubbed_;
  at::Tensor variance_;  // of the reference, p; undefined if it is deterministic
  Linearization reference_;
  double floor_;
};

struct AdversarialQueryOptions {
  double floor = 0;  // τ >= 0
  std::int64_t max_iterations = 50;
  double first_step = 0.1;      // largest change of a pixel, as a share of its range
  double smallest_step = 1e-4;  // stop when no step of this size helps
  std::function<void(double share)> progress = {};
};

struct AdversarialQuery {
  at::Tensor image;                 // C×H×W, in the box
  double nats = 0, start_nats = 0;  // Q there and at the start; nats >= start_nats
  double largest_change = 0;        // of a pixel, as a share of its range
  std::int64_t iterations = 0;      // steps that were taken
  std::int64_t evaluations = 0;     // of Q
  std::int64_t gradients = 0;       // of Q's gradient
  std::string reason = {};          // why Q is infinite at the start, and nothing was searched
};

// Projected gradient ascent from each of `starts` (n×C×H×W, clamped to the box), side by side.
// Along the gradient, scaled so that the largest change is the step's size, three sizes are tried
// at once (twice, once and half of the last one: few images together take little longer than one),
// and the best is taken if Q rises; if it does not, smaller ones follow. The result for one start
// does not depend on the others, up to rounding.
std::vector<AdversarialQuery> find_adversarial_queries(const Linearization& linearization,
                                                       const Weights& scrubbed,
                                                       const WeightDistribution& reference,
                                                       const at::Tensor& starts,
                                                       const ImageBox& box,
                                                       const AdversarialQueryOptions& options = {});

}  // namespace pumice
