#include "pumice/evaluation/adversarial_query.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pumice/core/error.h"
#include "pumice/evaluation/gaussian_divergence.h"
#include "pumice/linalg/cholesky.h"

namespace pumice {
namespace {

constexpr double largest_step = 1;

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

const Linearization& checked(const Linearization& linearization, const Weights& scrubbed,
                             const WeightDistribution& reference, double floor) {
  if (!(*scrubbed.layout == *reference.mean.layout)) {
    fail(
        "adversarial query: the two models have different parameters; the reference must be of the "
        "same architecture");
  }
  if (!(floor >= 0) || !std::isfinite(floor)) fail("floor: ", floor, ", must be >= 0");
  return linearization;
}

QueryValue value_of(const at::Tensor& difference, const at::Tensor& covariance, double rounding) {
  // A search for large values would find the images where S' is nothing but rounding.
  const GaussianDivergence divergence = dense_divergence(
      difference, covariance, covariance, tolerance_of_entries(rounding, covariance.size(0)));
  if (!divergence.finite()) {
    return {.nats = std::numeric_limits<double>::infinity(),
            .coefficients = {},
            .reason = divergence.reason};
  }
  return {.nats = divergence.quadratic,
          .coefficients = Cholesky::factorize(covariance).solve(difference)};
}

// A single image takes slow loops in LibTorch's convolutions (they ask for more than one image or
// 20,480 numbers): two copies of it take a third of the time on ResNet-18.
at::Tensor never_alone(const at::Tensor& images) {
  return images.size(0) == 1 ? at::cat({images, images}) : images;
}

// One start of the search.
struct Climb {
  AdversarialQuery query;
  QueryValue value;   // at query.image
  at::Tensor begin;   // the image it started from
  at::Tensor ascent;  // in shares of the range, largest entry 1; undefined: to be computed
  double step = 0;
  bool finished = false;
};

class Search {
 public:
  Search(const QueryObjective& objective, const ImageBox& box, at::ScalarType type,
         const AdversarialQueryOptions& options)
      : objective_(objective),
        low_(box.low.to(type)),
        high_(box.high.to(type)),
        range_(high_ - low_),
        options_(options) {
    if (!(range_.min().item<double>() > 0))
      fail("image box: its upper end must be above its lower");
  }

  std::vector<AdversarialQuery> run(const at::Tensor& starts) {
    begin(starts);
    for (std::vector<Climb*> moving = prepared(); !moving.empty(); moving = prepared()) {
      try_steps(moving);
      if (options_.progress) options_.progress(share_done());
    }
    std::vector<AdversarialQuery> found;
    for (Climb& climb : climbs_) {
      climb.query.largest_change =
          ((climb.query.image - climb.begin) / range_).abs().max().item<double>();
      found.push_back(std::move(climb.query));
    }
    return found;
  }

 private:
  at::Tensor clamped(const at::Tensor& image) const {
    return at::minimum(at::maximum(image, low_), high_);
  }

  void begin(const at::Tensor& starts) {
    const at::Tensor images = clamped(starts.detach().to(low_.scalar_type()));
    const std::vector<QueryValue> values = objective_.values(images);
    for (std::size_t i = 0; i < values.size(); ++i) {
      Climb climb;
      climb.value = values[i];
      climb.begin = climb.query.image = images[static_cast<std::int64_t>(i)].clone();
      climb.query.nats = climb.query.start_nats = values[i].nats;
      climb.query.evaluations = 1;
      climb.query.reason = values[i].reason;
      climb.step = options_.first_step;
      climb.finished = !values[i].reason.empty();
      climbs_.push_back(std::move(climb));
    }
  }

  // Those that can still move, each with its direction.
  std::vector<Climb*> prepared() {
    std::vector<Climb*> moving;
    for (Climb& climb : climbs_) {
      climb.finished = climb.finished || climb.step < options_.smallest_step ||
                       climb.query.iterations >= options_.max_iterations;
      if (climb.finished) continue;
      if (!climb.ascent.defined()) set_direction(climb);
      if (!climb.finished) moving.push_back(&climb);
    }
    return moving;
  }

  void set_direction(Climb& climb) const {
    ++climb.query.gradients;
    const at::Tensor& image = climb.query.image;
    // In shares of the range; what points out of the box would only make the step shorter.
    at::Tensor ascent = objective_.gradient(image, climb.value) * range_;
    const at::Tensor stuck = image.le(low_)
                                 .logical_and(ascent.lt(0))
                                 .logical_or(image.ge(high_).logical_and(ascent.gt(0)));
    ascent = ascent.masked_fill(stuck, 0);
    const double steepest = ascent.abs().max().item<double>();
    climb.finished = !(steepest > 0) || !std::isfinite(steepest);
    if (!climb.finished) climb.ascent = ascent / steepest;
  }

  // The sizes of a climb's next steps, the longest first.
  static std::vector<double> sizes_around(double step) {
    return {std::min(step * 2, largest_step), step, step / 2};
  }

  void try_steps(const std::vector<Climb*>& moving) const {
    std::vector<at::Tensor> candidates;
    for (const Climb* climb : moving) {
      for (const double size : sizes_around(climb->step)) {
        candidates.push_back(clamped(climb->query.image + climb->ascent * range_ * size));
      }
    }
    std::vector<QueryValue> values = objective_.values(at::stack(candidates));
    std::size_t position = 0;
    for (Climb* climb : moving) {
      double risen_by = 0;  // the size of the best step
      for (const double size : sizes_around(climb->step)) {
        const std::size_t own = position++;
        ++climb->query.evaluations;
        if (!values[own].reason.empty() || !(values[own].nats > climb->query.nats)) continue;
        risen_by = size;
        climb->query.image = candidates[own];
        climb->query.nats = values[own].nats;
        climb->value = std::move(values[own]);
      }
      if (risen_by > 0) {
        ++climb->query.iterations;
        climb->step = risen_by;
        climb->ascent = at::Tensor();
      } else {
        climb->step /= 8;  // so that the next three begin where these ended
      }
    }
  }

  double share_done() const {
    double done = 0;
    for (const Climb& climb : climbs_) {
      done += climb.finished ? 1.0
                             : static_cast<double>(climb.query.iterations) /
                                   static_cast<double>(options_.max_iterations);
    }
    return done / static_cast<double>(climbs_.size());
  }

  const QueryObjective& objective_;
  at::Tensor low_, high_, range_;
  const AdversarialQueryOptions& options_;
  std::vector<Climb> climbs_;
};

}  // namespace

ImageBox pixel_box(const Normalization& normalization) {
  if (normalization.empty()) {
    fail("adversarial query: images without normalisation have no known bounds, give them");
  }
  const at::Tensor mean = at::tensor(normalization.mean, at::kDouble).view({-1, 1, 1});
  const at::Tensor deviation = at::tensor(normalization.deviation, at::kDouble).view({-1, 1, 1});
  return {-mean / deviation, (1 - mean) / deviation};
}

QueryObjective::QueryObjective(const Linearization& linearization, const Weights& scrubbed,
                               const WeightDistribution& reference, double floor)
    : scrubbed_{scrubbed.layout, scrubbed.flat.detach()},
      reference_(checked(linearization, scrubbed, reference, floor)),
      floor_(floor) {
  if (!reference.deterministic()) variance_ = reference.variance;
}

std::vector<QueryValue> QueryObjective::values(const at::Tensor& images) const {
  const Linearization here = reference_.with_inputs(never_alone(images));
  std::vector<QueryValue> values(static_cast<std::size_t>(images.size(0)));
  if (!variance_.defined() && floor_ == 0) {
    for (QueryValue& value : values) {
      value = {.nats = std::numeric_limits<double>::infinity(),
               .coefficients = {},
               .reason = "the weights of the reference have no noise, and there is no floor"};
    }
    return values;
  }
  const std::int64_t classes = here.classes();
  at::Tensor covariances = (floor_ * floor_ * at::eye(classes, at::kDouble))
                               .expand({here.examples(), classes, classes})
                               .clone();
  at::NoGradGuard no_gradient;
  at::Tensor difference = here.model().logits(scrubbed_, here.inputs()).to(at::kDouble);
  if (variance_.defined()) {
    const NoisyAnswers noisy = here.noisy_answers(variance_);
    covariances += noisy.covariance;
    difference -= noisy.logits;
  } else {
    difference -= here.logits();
  }
  const double rounding = rounding_of(here.weights().flat.scalar_type());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    values[i] = value_of(difference[row], covariances[row], rounding);
  }
  return values;
}

at::Tensor QueryObjective::gradient(const at::Tensor& image, const QueryValue& value) const {
  const Linearization here = reference_.with_inputs(never_alone(image.unsqueeze(0)));
  // Of the two copies, only the first one counts.
  const at::Tensor coefficients =
      at::stack({value.coefficients, at::zeros_like(value.coefficients)});
  const at::Tensor scrubbed = input_gradient(here.model(), scrubbed_, coefficients, here.inputs());
  const at::Tensor reference =
      variance_.defined()
          ? here.input_gradient(variance_ * here.vjp(coefficients), coefficients)
          : input_gradient(here.model(), here.weights(), coefficients, here.inputs());
  return (scrubbed - reference)[0];
}

std::vector<AdversarialQuery> find_adversarial_queries(const Linearization& linearization,
                                                       const Weights& scrubbed,
                                                       const WeightDistribution& reference,
                                                       const at::Tensor& starts,
                                                       const ImageBox& box,
                                                       const AdversarialQueryOptions& options) {
  check(options);
  const QueryObjective objective(linearization, scrubbed, reference, options.floor);
  return Search(objective, box, reference.mean.flat.scalar_type(), options).run(starts);
}

}  // namespace pumice
