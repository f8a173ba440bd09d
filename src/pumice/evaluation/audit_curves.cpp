// What figures draw of an audit: curves instead of single numbers.
#include <algorithm>
#include <cmath>

#include "pumice/evaluation/activation_distance.h"
#include "pumice/evaluation/membership_attack.h"
#include "pumice/evaluation/observation.h"

namespace pumice {
namespace {

using Json = nlohmann::json;
using References = std::vector<Observation*>;

Json roc(Observation& model) {
  const ThresholdAttack attack =
      threshold_attack(model.margins_on(AuditSet::cohort), model.margins_on(AuditSet::test));
  Json false_positives = Json::array(), true_positives = Json::array();
  for (const RocPoint& point : attack.curve) {
    false_positives.push_back(point.false_positive_rate);
    true_positives.push_back(point.true_positive_rate);
  }
  return {{"false_positive_rate", false_positives}, {"true_positive_rate", true_positives}};
}

// Counts only: single values would be more about single people than a figure needs.
Json entropies(Observation& model) {
  constexpr int bins = 20;
  const double most = std::log(static_cast<double>(model.outputs(AuditSet::cohort).size(1)));
  Json edges = Json::array();
  for (int i = 0; i <= bins; ++i) edges.push_back(most * i / bins);
  Json curve{{"edges", edges}};
  for (const AuditSet set : audit_sets) {
    std::vector<std::int64_t> counts(bins, 0);
    for (const double entropy : softmax_entropies(model.log_outputs(set))) {
      const int bin = static_cast<int>(entropy / most * bins);
      ++counts[static_cast<std::size_t>(std::clamp(bin, 0, bins - 1))];
    }
    curve[set_name(set)] = counts;
  }
  return curve;
}

double mean_distance(const at::Tensor& outputs, const References& references, AuditSet set) {
  double sum = 0;
  for (Observation* reference : references) {
    sum += activation_distances(outputs, reference->outputs(set)).mean().item<double>();
  }
  return sum / static_cast<double>(references.size());
}

Json path(const AuditData& data, const AuditOptions& options, Observation& subject,
          Observation& original, const References& references) {
  std::vector<double> positions;
  for (std::int64_t i = 0; i <= options.path_steps; ++i) {
    positions.push_back(static_cast<double>(i) / static_cast<double>(options.path_steps));
  }
  Json curve{{"positions", positions}};
  for (const AuditSet set : audit_sets) {
    if (options.progress) {
      options.progress("Path of the shift", static_cast<double>(set) / audit_sets.size());
    }
    const at::Tensor along =
        softmax_outputs_along(*subject.audited().model, original.audited().released,
                              subject.audited().released, data.inputs_of(set), positions);
    Json distances = Json::array();
    for (std::int64_t i = 0; i < along.size(0); ++i) {
      distances.push_back(mean_distance(along[i], references, set));
    }
    curve[set_name(set)] = distances;
    if (references.size() < 2) continue;
    double floor = 0;
    for (Observation* reference : references) {
      References others = references;
      std::erase(others, reference);
      floor += mean_distance(reference->outputs(set), others, set);
    }
    curve["floor"][set_name(set)] = floor / static_cast<double>(references.size());
  }
  return curve;
}

// Against the first retrained model.
Json bounds_by_queries(const AuditOptions& options, Observation& subject, Observation& reference) {
  Json queries = Json::array(), nats = Json::array();
  for (const GaussianDivergence& bound :
       bounds_by_query_count(subject.joint_cohort_answers(), reference.joint_cohort_answers(),
                             {.floor = options.floor})) {
    queries.push_back(queries.size() + 1);
    nats.push_back(bound.finite() ? Json(bound.nats()) : Json("infinite"));
  }
  return {{"queries", queries}, {"nats", nats}};
}

}  // namespace

Json audit_curves(const AuditData& data, const AuditOptions& options, Observation& subject,
                  Observation& original, const References& references) {
  Json curves = Json::object();
  if (asked_for(options, "margin")) {
    curves["roc"] = roc(subject);
    curves["roc"]["original"] = roc(original);
    if (!references.empty()) curves["roc"]["reference"] = roc(*references.front());
  }
  if (asked_for(options, "attack")) curves["entropies"] = entropies(subject);
  if (references.empty()) return curves;
  if (asked_for(options, "path")) {
    curves["path"] = path(data, options, subject, original, references);
  }
  const bool noisy = !subject.audited().distribution.deterministic() &&
                     !references.front()->audited().distribution.deterministic();
  if (asked_for(options, "bounds") && noisy) {
    curves["bounds_by_queries"] = bounds_by_queries(options, subject, *references.front());
  }
  return curves;
}

}  // namespace pumice
