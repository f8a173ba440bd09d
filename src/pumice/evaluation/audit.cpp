#include "pumice/evaluation/audit.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <set>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"
#include "pumice/evaluation/observation.h"

namespace pumice {
namespace {

std::vector<std::int64_t> order_by_id(const Dataset& dataset) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(dataset.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto& ids = dataset.ids;
  std::sort(order.begin(), order.end(), [&](std::int64_t one, std::int64_t other) {
    return ids[static_cast<std::size_t>(one)] < ids[static_cast<std::size_t>(other)];
  });
  return order;
}

void check_task(const AuditTask& task) {
  if (task.split.cohort.empty()) fail("audit: the cohort is empty, there is nothing to look for");
  if (task.split.retain.size() < 2) {
    fail("audit: ", task.split.retain.size(),
         " retained examples, must be at least 2 to tell members from others");
  }
  if (task.test.size() < 2) {
    fail("audit: ", task.test.size(),
         " test examples, must be at least 2; give some with --test or --test-per-class");
  }
  const auto in_test =
      positions_by_class({task.test.labels.data_ptr<std::int64_t>(),
                          task.test.labels.data_ptr<std::int64_t>() + task.test.labels.numel()},
                         task.train.classes.size());
  for (std::size_t i = 0; i < in_test.size(); ++i) {
    if (in_test[i].empty()) {
      fail("audit: class '", task.train.classes.names[i],
           "' has no test example, must have at least one; choose other --classes or another "
           "--test");
    }
  }
  const WeightLayout& layout = task.original.model->layout();
  for (std::size_t i = 0; i < task.references.size(); ++i) {
    if (!(task.references[i].model->layout() == layout)) {
      fail("reference ", i + 1, ": ", task.references[i].model->layout().total(),
           " weights or other names and shapes, must be of the original's architecture (",
           layout.total(), "); retrain it from the same start");
    }
  }
}

AuditData make_data(const AuditTask& task) {
  AuditData data;
  data.normalization = task.normalization;
  data.train = subset(task.train, order_by_id(task.train));
  const std::array<Dataset, 3> given{subset(task.train, task.split.cohort),
                                     subset(task.train, task.split.retain), task.test};
  std::set<std::string> cohort(given[0].ids.begin(), given[0].ids.end());
  for (std::int64_t i = 0; i < data.train.size(); ++i) {
    const std::string& id = data.train.ids[static_cast<std::size_t>(i)];
    if (cohort.contains(id)) data.cohort.push_back(i);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::vector<std::int64_t> order = order_by_id(given[i]);
    const Dataset sorted = subset(given[i], order);
    data.inputs[i] = network_inputs(sorted.images, task.normalization);
    data.labels[i] = sorted.labels;
    data.given_order[i] = at::tensor(order, at::kLong);
  }
  return data;
}

// Readouts that compare with retrained models, when there is none.
Readout without_reference(const Measure& measure) {
  return {.name = measure.id,
          .unit = "",
          .definition = "a comparison with retrained models",
          .direction = ReadoutDirection::small,
          .value = std::numeric_limits<double>::quiet_NaN(),
          .reason = "there is no retrained model to compare with"};
}

}  // namespace

AuditedModel without_noise(std::shared_ptr<const Model> model, const Weights& weights) {
  return {std::move(model), weights, WeightDistribution{.mean = weights, .variance = {}}};
}

const std::vector<AuditGroup>& audit_groups() {
  static const std::vector<AuditGroup> groups{
      {"errors", "errors and loss on cohort, retained and test examples"},
      {"attack", "membership attack by entropy (support vector classifier)"},
      {"margin", "membership attack by margin: ROC, area, found at 1 % false alarms"},
      {"relearn", "epochs until the cohort is learned again (the slow one)"},
      {"distance", "distance of answers to retrained models"},
      {"path", "the same along the way from the original (a curve)"},
      {"bounds", "information bounds in nats, white-box and black-box; needs noise"},
      {"split", "remaining shift of the weights: what changes answers and what does not"},
      {"adversary", "the query that tells most; needs noise"},
      {"utility", "tug-of-war between forgetting and usefulness"},
      {"shadows", "attacks with shadow models: U-LiRA, KLOM; needs --shadows"},
  };
  return groups;
}

void check_groups(const std::vector<std::string>& names, const std::string& option) {
  std::vector<std::string> known;
  for (const AuditGroup& group : audit_groups()) known.push_back(group.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
    fail(option, ": '", name, "', must be one of ", list, suggestion(name, known));
  }
}

const JudgedReadout* AuditReport::find(const std::string& id) const {
  const auto found = std::find_if(readouts.begin(), readouts.end(),
                                  [&](const JudgedReadout& one) { return one.id == id; });
  return found == readouts.end() ? nullptr : &*found;
}

struct Audit::Observations {
  Observations(const AuditTask& task, AuditOptions given, std::shared_ptr<KnownReadouts> shared)
      : options(std::move(given)),
        data(make_data(task)),
        original_model(task.original),
        reference_models(task.references),
        original(original_model, data, options),
        measures(make_measures(data, options, original_model.released)),
        known_without_noise(std::move(shared)) {
    for (const AuditedModel& model : reference_models) {
      references.emplace_back(model, data, options);
    }
  }

  std::vector<Observation*> all_references() {
    std::vector<Observation*> all;
    for (Observation& reference : references) all.push_back(&reference);
    return all;
  }
  // The same number of the original and of each retrained model, once for all subjects.
  const ReadoutsBeside& beside(const Measure& measure);

  AuditOptions options;
  AuditData data;
  AuditedModel original_model;
  std::vector<AuditedModel> reference_models;
  Observation original;
  std::deque<Observation> references;
  std::vector<Measure> measures;
  KnownReadouts known_with_noise;
  std::shared_ptr<KnownReadouts> known_without_noise;
};

const ReadoutsBeside& Audit::Observations::beside(const Measure& measure) {
  KnownReadouts& known = measure.looks_at_noise ? known_with_noise : *known_without_noise;
  const auto kept = known.find(measure.id);
  if (kept != known.end()) return kept->second;
  ReadoutsBeside values;
  const std::vector<Observation*> all = all_references();
  if (!measure.against_references) {
    values.original = measure.read(original, {}).value;
    for (Observation* reference : all) {
      values.references.push_back(measure.read(*reference, {}).value);
    }
  } else if (!all.empty()) {
    values.original = measure.read(original, all).value;
    for (Observation* reference : all) {
      std::vector<Observation*> others = all;
      std::erase(others, reference);
      if (!others.empty()) values.references.push_back(measure.read(*reference, others).value);
    }
  }
  return known[measure.id] = values;
}

Audit::Audit(const AuditTask& task, AuditOptions options, std::shared_ptr<KnownReadouts> known) {
  check_groups(options.groups);
  check_task(task);
  observations_ = std::make_unique<Observations>(task, std::move(options), std::move(known));
}

Audit::~Audit() = default;

AuditReport Audit::judge(const std::string& name, const AuditedModel& subject,
                         const ShadowMargins* shadows) {
  Observations& all = *observations_;
  if (!(subject.model->layout() == all.original_model.model->layout())) {
    fail(name, ": ", subject.model->layout().total(),
         " weights or other names and shapes, must be of the original's architecture (",
         all.original_model.model->layout().total(), ")");
  }
  Observation observation(subject, all.data, all.options);
  const std::vector<Observation*> references = all.all_references();
  double retrained_margin = 0;
  for (Observation* reference : references) {
    retrained_margin += reference->mean_cohort_margin() / static_cast<double>(references.size());
  }
  AuditReport report;
  report.subject = name;
  for (const Measure& measure : all.measures) {
    const auto& beside = all.beside(measure);
    JudgedReadout judged{.id = measure.id,
                         .group = measure.group,
                         .readout = measure.against_references && references.empty()
                                        ? without_reference(measure)
                                        : measure.read(observation, references),
                         .original = beside.original,
                         .references = beside.references};
    LeakSide side = measure.side;
    if (measure.side_by_cohort) {
      const bool knows_more = observation.mean_cohort_margin() >= retrained_margin;
      const bool bad_above = judged.readout.direction == ReadoutDirection::small;
      side = knows_more == bad_above ? LeakSide::above : LeakSide::below;
    }
    judged.judgement = pumice::judge(judged.readout, judged.references,
                                     {.resolution = measure.resolution,
                                      .scale = measure.scale,
                                      .compares = measure.against_references},
                                     side);
    report.readouts.push_back(std::move(judged));
  }
  if (shadows && asked_for(all.options, "shadows")) {
    for (JudgedReadout& judged : judge_shadows(all.data, all.options, observation, *shadows)) {
      report.readouts.push_back(std::move(judged));
    }
  }
  std::vector<NamedJudgement> judgements;
  for (const JudgedReadout& judged : report.readouts) {
    judgements.push_back({judged.readout.name, judged.group, judged.judgement});
  }
  report.overall = overall(judgements);
  report.curves = audit_curves(all.data, all.options, observation, all.original, references);
  return report;
}

nlohmann::json to_json(const AuditReport& report) {
  nlohmann::json readouts = nlohmann::json::array();
  for (const JudgedReadout& judged : report.readouts) {
    nlohmann::json json = to_json(judged.readout);
    json["id"] = judged.id;
    json["group"] = judged.group;
    if (judged.original) json["original"] = json_number(*judged.original);
    json["references"] = nlohmann::json::array();
    for (const double value : judged.references) json["references"].push_back(json_number(value));
    if (judged.judgement.band) {
      const ReferenceBand& band = *judged.judgement.band;
      json["band"] = {{"low", band.low}, {"high", band.high}};
      json["chance"] = {{"low", band.least}, {"high", band.most}};
    }
    json["verdict"] = verdict_text(judged.judgement.verdict);
    json["because"] = judged.judgement.because;
    readouts.push_back(json);
  }
  return {
      {"subject", report.subject},
      {"overall",
       {{"verdict", verdict_text(report.overall.verdict)}, {"sentence", report.overall.sentence}}},
      {"readouts", readouts},
      {"curves", report.curves}};
}

}  // namespace pumice
