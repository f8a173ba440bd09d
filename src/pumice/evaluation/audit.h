// An audit: every readout of a model, with the original's and retrained models' values beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/dataset.h"
#include "pumice/data/normalization.h"
#include "pumice/data/split.h"
#include "pumice/evaluation/information_bounds.h"
#include "pumice/evaluation/relearn_time.h"
#include "pumice/evaluation/shadow_margins.h"
#include "pumice/evaluation/verdict.h"
#include "pumice/model/model.h"
#include "pumice/model/weight_distribution.h"

namespace pumice {

// A model as an audit sees it. `model` brings architecture and buffers, which may differ from those
// of another model of the same audit; names and shapes of the weights may not.
struct AuditedModel {
  std::shared_ptr<const Model> model;
  Weights released;                 // what is given away: readouts look at this
  WeightDistribution distribution;  // what it was drawn from: bounds look at this
};
// Weights without noise: released as they are.
AuditedModel without_noise(std::shared_ptr<const Model> model, const Weights& weights);

struct AuditTask {
  const Dataset& train;  // D
  const Split& split;    // cohort and retain
  const Dataset& test;
  Normalization normalization;
  AuditedModel original;                 // w(D)
  std::vector<AuditedModel> references;  // w(Dr), retrained; may be empty
};

// The groups of readouts, in the order of reports; names for --only and protocols.
struct AuditGroup {
  std::string name;
  std::string description;  // one line
};
const std::vector<AuditGroup>& audit_groups();
// Throws Error with a suggestion for a name that is none; `option` is where it was said.
void check_groups(const std::vector<std::string>& names, const std::string& option = "readouts");

struct AuditOptions {
  std::vector<std::string> groups = {};  // empty: all (shadows only if they are given)
  RelearnOptions relearn = {};
  Answers answers = Answers::logits;    // of the black-box bounds
  double floor = 0;                     // τ of the black-box bounds (information_bounds.h)
  std::int64_t joint_queries = 20;      // at most, of the bound by number of queries
  std::int64_t adversarial_starts = 2;  // cohort examples that the adversarial query starts from
  std::int64_t adversarial_iterations = 20;
  std::int64_t path_steps = 10;  // of the way from w(D) to the model
  BootstrapOptions bootstrap = {};
  std::optional<std::int64_t> memory = {};
  // Told what is being computed and which share of it is done; may throw to give up.
  std::function<void(const std::string& what, double share)> progress = {};
};

struct JudgedReadout {
  std::string id;     // "cohort_error": stable, for records
  std::string group;  // one of audit_groups()
  Readout readout;
  std::optional<double> original = {};
  std::vector<double> references = {};
  Judgement judgement = {};
};

struct AuditReport {
  std::string subject;
  std::vector<JudgedReadout> readouts;
  OverallVerdict overall;
  nlohmann::json curves = nlohmann::json::object();  // docs/records.md

  const JudgedReadout* find(const std::string& id) const;  // nullptr: not computed
};
nlohmann::json to_json(const AuditReport& report);

// What a readout says of the original and of each retrained model.
struct ReadoutsBeside {
  std::optional<double> original;
  std::vector<double> references;
};
using KnownReadouts = std::map<std::string, ReadoutsBeside>;  // by id

// What is computed of the original and of the references is computed once and shared by all models
// that are judged. Nothing that is given is changed.
class Audit {
 public:
  // Throws Error, before any work, for an empty cohort or retain set, fewer than two test examples,
  // a class of the training set that is missing in the test set, or models whose weights have
  // different names or shapes. `task` must outlive this object. Audits of the same original and
  // references under different noise may share `known`: readouts that look at no noise, relearning
  // above all, are then computed once.
  Audit(const AuditTask& task, AuditOptions options,
        std::shared_ptr<KnownReadouts> known = std::make_shared<KnownReadouts>());
  ~Audit();

  // Cost: one forward pass over D and test, the Jacobian blocks of both if there is noise, and at
  // most relearn.max_epochs training epochs. `shadows` are needed for the group "shadows".
  AuditReport judge(const std::string& name, const AuditedModel& subject,
                    const ShadowMargins* shadows = nullptr);

 private:
  struct Observations;
  std::unique_ptr<Observations> observations_;
};

}  // namespace pumice
