// The readouts of an audit that look at weights and their noise: bounds in nats, the parts of the
// remaining shift, the adversarial query.
#include <algorithm>
#include <cmath>
#include <limits>

#include "pumice/core/error.h"
#include "pumice/evaluation/adversarial_query.h"
#include "pumice/evaluation/observation.h"

namespace pumice {
namespace {

using References = std::vector<Observation*>;
using Divergences = std::vector<GaussianDivergence>;

bool both_noisy(const Observation& one, const Observation& other) {
  return !one.audited().distribution.deterministic() &&
         !other.audited().distribution.deterministic();
}

// Over retrained models; infinite if one is.
GaussianDivergence mean_of(const Divergences& bounds) {
  GaussianDivergence mean = bounds.front();
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    mean.quadratic += bounds[i].quadratic;
    mean.spread += bounds[i].spread;
    if (mean.reason.empty()) mean.reason = bounds[i].reason;
  }
  mean.quadratic /= static_cast<double>(bounds.size());
  mean.spread /= static_cast<double>(bounds.size());
  return mean;
}

// What is known of one bound is how it differs between retrained models.
std::optional<Interval> range_over(const Divergences& bounds) {
  if (bounds.size() < 2) return {};
  Interval interval{.low = bounds.front().nats(),
                    .high = bounds.front().nats(),
                    .method = text("range over ", bounds.size(), " retrained models")};
  for (const GaussianDivergence& bound : bounds) {
    if (!bound.finite()) return {};
    interval.low = std::min(interval.low, bound.nats());
    interval.high = std::max(interval.high, bound.nats());
  }
  return interval;
}

Measure white_box_measure() {
  return {.id = "white_box",
          .group = "bounds",
          .side = LeakSide::above,
          .looks_at_noise = true,
          .against_references = true,
          .resolution = 0.01,
          .scale = Scale::multiplicative,
          .read = [](Observation& model, const References& references) {
            Divergences bounds;
            for (const Observation* reference : references) {
              bounds.push_back(
                  white_box_bound(model.audited().distribution, reference->audited().distribution));
            }
            Readout readout = bound_readout(
                "white-box bound",
                "at most so much can the weights still tell about the cohort, on average: "
                "divergence of the noisy weights from a retrained model's",
                mean_of(bounds));
            readout.interval = range_over(bounds);
            return readout;
          }};
}

Divergences query_bounds_against(Observation& model, Observation& reference, AuditSet set,
                                 double floor) {
  if (!both_noisy(model, reference)) {
    const GaussianDivergence none =
        white_box_bound(model.audited().distribution, reference.audited().distribution);
    return Divergences(static_cast<std::size_t>(model.outputs(set).size(0)),
                       infinite_divergence(1, none.reason));
  }
  return query_bounds(model.answers(set), reference.answers(set), {.floor = floor});
}

Measure black_box_measure(AuditSet set, const AuditOptions& options) {
  return {.id = "black_box_" + set_name(set),
          .group = "bounds",
          .side = LeakSide::above,
          .looks_at_noise = true,
          .against_references = true,
          .resolution = 0.01,
          .scale = Scale::multiplicative,
          .read = [set, floor = options.floor, bootstrap = options.bootstrap](
                      Observation& model, const References& references) {
            std::vector<Divergences> by_reference;
            for (Observation* reference : references) {
              by_reference.push_back(query_bounds_against(model, *reference, set, floor));
            }
            Divergences means;
            for (std::size_t query = 0; query < by_reference.front().size(); ++query) {
              Divergences own;
              for (const Divergences& bounds : by_reference) own.push_back(bounds[query]);
              means.push_back(mean_of(own));
            }
            return mean_bound_readout(
                "black-box bound, " + set_name(set),
                text("at most so much can one answer still tell about the cohort: divergence of "
                     "the answer from a retrained model's, mean over the ",
                     set_name(set), " queries"),
                means, bootstrap);
          }};
}

Measure joint_measure(const AuditData& data, const AuditOptions& options) {
  const std::int64_t queries =
      std::min(options.joint_queries, data.labels_of(AuditSet::cohort).size(0));
  return {
      .id = "joint_cohort",
      .group = "bounds",
      .side = LeakSide::above,
      .looks_at_noise = true,
      .against_references = true,
      .resolution = 0.01,
      .scale = Scale::multiplicative,
      .read = [queries, floor = options.floor](Observation& model, const References& references) {
        Divergences bounds;
        for (Observation* reference : references) {
          bounds.push_back(both_noisy(model, *reference)
                               ? joint_bound(model.joint_cohort_answers(),
                                             reference->joint_cohort_answers(), {.floor = floor})
                               : white_box_bound(model.audited().distribution,
                                                 reference->audited().distribution));
        }
        Readout readout =
            bound_readout(text("black-box bound, ", queries, " queries of the cohort together"),
                          "the same for the answers to several queries jointly", mean_of(bounds));
        readout.interval = range_over(bounds);
        return readout;
      }};
}

// Against the first retrained model: the one with the original's seed, where there is one.
Measure split_measure(bool visible) {
  return {.id = visible ? "visible_shift" : "hidden_shift",
          .group = "split",
          .side = LeakSide::above,
          .against_references = true,
          .scale = Scale::multiplicative,
          .read = [visible](Observation& model, const References& references) {
            const auto norms = model.shift_from(*references.front());
            return Readout{.name = visible ? "remaining shift that changes answers"
                                           : "remaining shift that changes no answer",
                           .unit = "weight norm",
                           .definition = text("length of the part of w − w(retrained) ",
                                              visible ? "in" : "orthogonal to",
                                              " the row space of the Jacobian on the cohort"),
                           .direction = ReadoutDirection::small,
                           .value = visible ? norms.visible : norms.hidden};
          }};
}

Readout undefined_readout(Readout readout, std::string reason) {
  readout.value = std::numeric_limits<double>::quiet_NaN();
  readout.reason = std::move(reason);
  return readout;
}

Readout adversarial_readout(const AuditData& data, const AuditOptions& options,
                            const Observation& model, const Observation& reference) {
  Readout readout{.name = "adversarial query",
                  .unit = "nats",
                  .definition =
                      "quadratic term of the black-box bound at the image that makes it largest, "
                      "searched from cohort examples within the range of pixels",
                  .direction = ReadoutDirection::small};
  if (data.normalization.empty()) {
    return undefined_readout(readout, "images without normalisation have no known range");
  }
  if (!both_noisy(model, reference)) {
    readout.value = std::numeric_limits<double>::infinity();
    readout.reason = "weights without noise have no bound";
    return readout;
  }
  const ImageBox box = pixel_box(data.normalization);
  const at::Tensor& images = data.inputs_of(AuditSet::cohort);
  const std::int64_t starts = std::min(options.adversarial_starts, images.size(0));
  AdversarialQueryOptions search{.floor = options.floor,
                                 .max_iterations = options.adversarial_iterations};
  if (options.progress) {
    search.progress = [&](double share) { options.progress("Adversarial query", share); };
  }
  for (const AdversarialQuery& query : find_adversarial_queries(
           reference.linearized_on(images.narrow(0, 0, starts)), model.audited().distribution.mean,
           reference.audited().distribution, images.narrow(0, 0, starts), box, search)) {
    if (!query.reason.empty()) {
      readout.value = std::numeric_limits<double>::infinity();
      readout.reason = query.reason;
      return readout;
    }
    readout.value = std::max(readout.value, query.nats);
  }
  return readout;
}

}  // namespace

std::vector<Measure> bound_measures(const AuditData& data, const AuditOptions& options) {
  std::vector<Measure> measures{white_box_measure()};
  for (const AuditSet set : audit_sets) measures.push_back(black_box_measure(set, options));
  measures.push_back(joint_measure(data, options));
  measures.push_back(split_measure(true));
  measures.push_back(split_measure(false));
  measures.push_back({.id = "adversarial_query",
                      .group = "adversary",
                      .side = LeakSide::above,
                      .looks_at_noise = true,
                      .against_references = true,
                      .resolution = 0.01,
                      .scale = Scale::multiplicative,
                      .read = [&data, &options](Observation& model, const References& references) {
                        return adversarial_readout(data, options, model, *references.front());
                      }});
  return measures;
}

}  // namespace pumice
