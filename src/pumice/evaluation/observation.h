// What one model of an audit shows: its answers on the three sets, computed when first asked for
// and then kept, since many readouts look at the same ones.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pumice/evaluation/audit.h"

namespace pumice {

enum class AuditSet { cohort, retain, test };
constexpr std::array<AuditSet, 3> audit_sets{AuditSet::cohort, AuditSet::retain, AuditSet::test};
std::string set_name(AuditSet set);  // "cohort", "retain", "test"

// The data of an audit, sorted by id: nothing that is computed from it depends on the order in
// which examples were given.
struct AuditData {
  Dataset train;                     // D
  std::vector<std::int64_t> cohort;  // positions in `train`, ascending
  std::array<at::Tensor, 3> inputs;  // by set: network inputs
  std::array<at::Tensor, 3> labels;
  std::array<at::Tensor, 3> given_order;  // position in the set as it was given, of each example
  Normalization normalization;
  // The first model that was linearised: all models of an audit have its layers.
  struct Examined {
    std::shared_ptr<const Model> model;
    std::optional<Linearization> linearization;
  };
  std::shared_ptr<Examined> examined = std::make_shared<Examined>();

  const at::Tensor& inputs_of(AuditSet set) const { return inputs[static_cast<std::size_t>(set)]; }
  const at::Tensor& labels_of(AuditSet set) const { return labels[static_cast<std::size_t>(set)]; }
};

class Observation {
 public:
  // All three must outlive this object.
  Observation(const AuditedModel& model, const AuditData& data, const AuditOptions& options)
      : model_(model), data_(data), options_(options) {}

  const AuditedModel& audited() const { return model_; }
  const at::Tensor& outputs(AuditSet set);  // softmax of the released weights, N×c, float64
  // Logits up to a constant of each example, which no margin, entropy or error depends on.
  at::Tensor log_outputs(AuditSet set) { return outputs(set).clamp_min(smallest_output).log(); }
  std::vector<double> margins_on(AuditSet set);  // one for each example
  double mean_cohort_margin();
  Linearization linearized_on(const at::Tensor& inputs) const;  // at the mean of the weights
  // With the noise of the weights, at their mean; only for models that have noise.
  const SeparateAnswers& answers(AuditSet set);
  const JointAnswers& joint_cohort_answers();  // to the first joint_queries of the cohort
  // Of the way from a retrained model to this one, by the retrained model's Jacobian on the cohort.
  struct ShiftNorms {
    double visible = 0, hidden = 0;
  };
  ShiftNorms shift_from(const Observation& reference);

 private:
  static constexpr double smallest_output = 1e-300;  // log must stay finite
  AnswerOptions answer_options(const std::string& what) const;

  const AuditedModel& model_;
  const AuditData& data_;
  const AuditOptions& options_;
  std::array<std::optional<at::Tensor>, 3> outputs_;
  std::array<std::optional<SeparateAnswers>, 3> answers_;
  std::optional<JointAnswers> joint_;
  std::map<const Observation*, ShiftNorms> shifts_;
};

// One number of an audit, for any model in it.
struct Measure {
  std::string id;
  std::string group;
  LeakSide side = LeakSide::below;
  bool side_by_cohort = false;  // a distance has no side of its own: that of the cohort's margin
  bool looks_at_noise = false;  // at the distributions of weights, not only at what is released
  bool against_references = false;  // a retrained model is then read against the other ones
  double resolution = 0;            // smaller differences are not worth a verdict
  Scale scale = Scale::additive;
  // `references` is empty unless against_references.
  std::function<Readout(Observation& model, const std::vector<Observation*>& references)> read;
};

// Those of the groups that were asked for, in the order of audit_groups(). What is given must
// outlive them.
std::vector<Measure> make_measures(const AuditData& data, const AuditOptions& options,
                                   const Weights& original);
// Of these, the ones that look at the weights and their noise: bounds, split, adversary.
std::vector<Measure> bound_measures(const AuditData& data, const AuditOptions& options);

// For figures: docs/records.md. `references` may be empty.
nlohmann::json audit_curves(const AuditData& data, const AuditOptions& options,
                            Observation& subject, Observation& original,
                            const std::vector<Observation*>& references);

// What shadow models show, with the chance that models without any difference set themselves as the
// yardstick in place of retrained references.
std::vector<JudgedReadout> judge_shadows(const AuditData& data, const AuditOptions& options,
                                         Observation& subject, const ShadowMargins& shadows);

bool asked_for(const AuditOptions& options, const std::string& group);

}  // namespace pumice
