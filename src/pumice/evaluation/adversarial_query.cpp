#include "pumice/evaluation/adversarial_query.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/evaluation/gaussian_divergence.h"
#include "pumice/linalg/cholesky.h"

namespace pumice {
namespace {

constexpr double largest_step = 1;
constexpr double grown = 2, shrunk = 0.5;

void check(const AdversarialQueryOptions& options) {
  if (options.max_iterations < 0) {
    fail("adversarial query: ", options.max_iterations, " iterations, must be >= 0");
  }
  if (!(options.smallest_step > 0 && options.first_step >= options.smallest_step &&
        options.first_step <= largest_step)) {
    fail("adversarial query: steps from ", options.first_step, " down to ", options.smallest_step,
         ", must be in (0, 1] and fall");
  }
}

// a = (S' + τ²I)⁻¹ Δf and Q; the reason if there is no inverse.
struct Whitened {
  at::Tensor coefficients;  // c
  double nats = std::numeric_limits<double>::infinity();
  std::string reason;
};

Whitened whiten(const Model& model, const Weights& scrubbed, const WeightDistribution& reference,
                const at::Tensor& batch, double floor) {
  at::AutoGradMode with_gradient(true);
  const Weights leaf{reference.mean.layout, reference.mean.flat.detach().clone().requires_grad_()};
  const at::Tensor logits = model.logits(leaf, batch)[0];
  const std::int64_t classes = logits.size(0);
  const at::Tensor difference = [&] {
    at::NoGradGuard no_gradient;
    return (model.logits(scrubbed, batch)[0] - logits).to(at::kDouble);
  }();
  at::Tensor covariance = floor * floor * at::eye(classes, at::kDouble);
  if (!reference.deterministic()) {
    // One image alone: its few rows of the Jacobian are ordinary gradients, and the engine's table
    // of layers, which pays for sets of examples, would cost more than they do.
    std::vector<at::Tensor> rows;
    const at::Tensor deviation = reference.variance.sqrt();
    for (std::int64_t k = 0; k < classes; ++k) {
      rows.push_back(
          torch::autograd::grad({logits[k]}, {leaf.flat}, {}, /*retain_graph=*/true)[0].to(
              at::kDouble) *
          deviation);
    }
    const at::Tensor scaled = at::stack(rows);
    covariance += scaled.mm(scaled.t());
  }
  if (reference.deterministic() && floor == 0) {
    return {.coefficients = {},
            .reason = "the weights of the reference have no noise, and there is no floor"};
  }
  // A search for large values would find the images where S' is nothing but rounding.
  const GaussianDivergence divergence =
      dense_divergence(difference, covariance, covariance,
                       tolerance_of_entries(rounding_of(batch.scalar_type()), covariance.size(0)));
  if (!divergence.finite()) return {.coefficients = {}, .reason = divergence.reason};
  return {.coefficients = Cholesky::factorize(covariance).solve(difference),
          .nats = divergence.quadratic,
          .reason = {}};
}

}  // namespace

ImageBox pixel_box(const Normalization& normalization) {
  if (normalization.empty()) {
    fail("adversarial query: images without normalisation have no known bounds, give them");
  }
  const at::Tensor mean = at::tensor(normalization.mean, at::kDouble).view({-1, 1, 1});
  const at::Tensor deviation = at::tensor(normalization.deviation, at::kDouble).view({-1, 1, 1});
  return {-mean / deviation, (1 - mean) / deviation};
}

QueryValue query_value(const Model& model, const Weights& scrubbed,
                       const WeightDistribution& reference, const at::Tensor& image, double floor,
                       bool with_gradient) {
  if (!(*scrubbed.layout == *reference.mean.layout)) {
    fail(
        "adversarial query: the two models have different parameters; the reference must be of the "
        "same architecture");
  }
  if (!(floor >= 0) || !std::isfinite(floor)) fail("floor: ", floor, ", must be >= 0");
  const auto type = reference.mean.flat.scalar_type();
  const at::Tensor batch = image.detach().to(type).unsqueeze(0);
  const Whitened whitened = whiten(model, scrubbed, reference, batch, floor);
  QueryValue value{.nats = whitened.nats, .gradient = {}, .reason = whitened.reason};
  if (!with_gradient || !value.reason.empty()) return value;

  at::AutoGradMode with_grad(true);
  const at::Tensor input = batch.clone().requires_grad_();
  const Weights leaf{reference.mean.layout, reference.mean.flat.detach().clone().requires_grad_()};
  const at::Tensor coefficients = whitened.coefficients.to(type);
  const Weights fixed{scrubbed.layout, scrubbed.flat.detach()};
  const at::Tensor answer = model.logits(leaf, input)[0].dot(coefficients);
  at::Tensor objective = model.logits(fixed, input)[0].dot(coefficients) - answer;
  if (!reference.deterministic()) {
    const at::Tensor slope = torch::autograd::grad({answer}, {leaf.flat}, {}, /*retain_graph=*/true,
                                                   /*create_graph=*/true)[0];
    objective = objective - 0.5 * (slope * reference.variance.sqrt().to(type)).square().sum();
  }
  value.gradient = torch::autograd::grad({objective}, {input})[0][0].detach();
  return value;
}

AdversarialQuery find_adversarial_query(const Model& model, const Weights& scrubbed,
                                        const WeightDistribution& reference,
                                        const at::Tensor& start, const ImageBox& box,
                                        const AdversarialQueryOptions& options) {
  check(options);
  const auto type = reference.mean.flat.scalar_type();
  const at::Tensor low = box.low.to(type), high = box.high.to(type);
  const at::Tensor range = high - low;
  if (!(range.min().item<double>() > 0)) fail("image box: its upper end must be above its lower");
  const auto clamped = [&](const at::Tensor& image) {
    return at::minimum(at::maximum(image, low), high);
  };
  AdversarialQuery query;
  query.image = clamped(start.detach().to(type));
  const at::Tensor begin = query.image;
  QueryValue value = query_value(model, scrubbed, reference, query.image, options.floor);
  query.evaluations = 1;
  query.nats = query.start_nats = value.nats;
  query.reason = value.reason;
  if (!query.reason.empty()) return query;

  double step = options.first_step;
  while (query.iterations < options.max_iterations && step >= options.smallest_step) {
    // In shares of the range; what points out of the box would only make the step shorter.
    at::Tensor ascent = value.gradient * range;
    const at::Tensor stuck = query.image.le(low)
                                 .logical_and(ascent.lt(0))
                                 .logical_or(query.image.ge(high).logical_and(ascent.gt(0)));
    ascent = ascent.masked_fill(stuck, 0);
    const double steepest = ascent.abs().max().item<double>();
    if (!(steepest > 0) || !std::isfinite(steepest)) break;
    bool risen = false;
    while (!risen && step >= options.smallest_step) {
      const at::Tensor candidate = clamped(query.image + ascent * range * (step / steepest));
      QueryValue next = query_value(model, scrubbed, reference, candidate, options.floor);
      ++query.evaluations;
      risen = next.reason.empty() && next.nats > query.nats;
      if (risen) {
        query.image = candidate;
        query.nats = next.nats;
        value = std::move(next);
      }
      step = risen ? std::min(step * grown, largest_step) : step * shrunk;
    }
    query.iterations += risen;
  }
  query.largest_change = ((query.image - begin) / range).abs().max().item<double>();
  return query;
}

}  // namespace pumice
