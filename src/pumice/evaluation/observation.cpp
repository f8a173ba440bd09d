#include "pumice/evaluation/observation.h"

#include <algorithm>
#include <numeric>

#include "pumice/evaluation/activation_distance.h"
#include "pumice/evaluation/membership_attack.h"

namespace pumice {

std::string set_name(AuditSet set) {
  constexpr std::array<const char*, 3> names{"cohort", "retain", "test"};
  return names[static_cast<std::size_t>(set)];
}

const at::Tensor& Observation::outputs(AuditSet set) {
  auto& kept = outputs_[static_cast<std::size_t>(set)];
  if (!kept) kept = softmax_outputs(*model_.model, model_.released, data_.inputs_of(set));
  return *kept;
}

std::vector<double> Observation::margins_on(AuditSet set) {
  return margins(log_outputs(set), data_.labels_of(set));
}

double Observation::mean_cohort_margin() {
  const std::vector<double> values = margins_on(AuditSet::cohort);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Linearization Observation::linearized_on(const at::Tensor& inputs) const {
  AuditData::Examined& examined = *data_.examined;
  if (!examined.linearization) {
    examined.model = model_.model;
    examined.linearization.emplace(*model_.model, model_.distribution.mean, inputs);
  }
  return {*examined.linearization, *model_.model, model_.distribution.mean, inputs};
}

AnswerOptions Observation::answer_options(const std::string& what) const {
  AnswerOptions options{.answers = options_.answers, .memory = options_.memory, .progress = {}};
  if (options_.progress) {
    options.progress = [this, what](double share) { options_.progress(what, share); };
  }
  return options;
}

const SeparateAnswers& Observation::answers(AuditSet set) {
  if (!answers_.front()) {
    const SeparateAnswers all =
        separate_answers(linearized_on(at::cat(data_.inputs)), model_.distribution,
                         answer_options("Black-box bounds"));
    std::int64_t first = 0;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      const std::int64_t count = data_.inputs[i].size(0);
      answers_[i] = SeparateAnswers{.mean = all.mean.narrow(0, first, count),
                                    .covariance = all.covariance.narrow(0, first, count),
                                    .rounding = all.rounding};
      first += count;
    }
  }
  return *answers_[static_cast<std::size_t>(set)];
}

const JointAnswers& Observation::joint_cohort_answers() {
  if (!joint_) {
    const at::Tensor& inputs = data_.inputs_of(AuditSet::cohort);
    const std::int64_t queries = std::min(options_.joint_queries, inputs.size(0));
    joint_ = joint_answers(linearized_on(inputs.narrow(0, 0, queries)), model_.distribution,
                           answer_options("Joint black-box bound"));
  }
  return *joint_;
}

Observation::ShiftNorms Observation::shift_from(const Observation& reference) {
  const auto kept = shifts_.find(&reference);
  if (kept != shifts_.end()) return kept->second;
  const AuditedModel& other = reference.audited();
  const Linearization linearization = reference.linearized_on(data_.inputs_of(AuditSet::cohort));
  const at::Tensor shift =
      model_.distribution.mean.flat.to(at::kDouble) - other.distribution.mean.flat.to(at::kDouble);
  const ShiftSplit split =
      split_shift(linearization, shift, {.tolerance = {}, .memory = options_.memory});
  return shifts_[&reference] = {split.visible_norm, split.hidden_norm};
}

}  // namespace pumice
