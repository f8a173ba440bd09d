// The readouts of an audit that look at answers: errors, attacks, relearning, distances.
#include <algorithm>
#include <cmath>
#include <limits>

#include "pumice/core/error.h"
#include "pumice/evaluation/activation_distance.h"
#include "pumice/evaluation/membership_attack.h"
#include "pumice/evaluation/observation.h"
#include "pumice/evaluation/tug_of_war.h"

namespace pumice {
namespace {

using References = std::vector<Observation*>;

double examples_of(const AuditData& data, AuditSet set) {
  return static_cast<double>(data.labels_of(set).size(0));
}

std::string readable(AuditSet set) {
  return set == AuditSet::cohort
             ? "the cohort"
             : text("the ", set_name(set), set == AuditSet::retain ? "ed" : "", " examples");
}

// One bool for each example.
at::Tensor answered_rightly(Observation& model, const AuditData& data, AuditSet set) {
  return model.outputs(set).argmax(1).eq(data.labels_of(set));
}

void add_errors(std::vector<Measure>& measures, const AuditData& data,
                const AuditOptions& options) {
  for (const AuditSet set : audit_sets) {
    // A lower error on the cohort than a retrained model's is knowledge of it. On other examples a
    // lower error harms nobody, and a higher one is damage.
    const auto direction =
        set == AuditSet::cohort ? ReadoutDirection::like_retrained : ReadoutDirection::small;
    measures.push_back({.id = set_name(set) + "_error",
                        .group = "errors",
                        .resolution = 1 / examples_of(data, set),
                        .read = [&data, set, direction](Observation& model, const References&) {
                          const at::Tensor right = answered_rightly(model, data, set);
                          const std::int64_t wrong = right.logical_not().sum().item<std::int64_t>();
                          return share_readout("error on " + readable(set),
                                               "share that the model misclassifies", direction,
                                               wrong, right.numel());
                        }});
  }
  measures.push_back(
      {.id = "cohort_loss",
       .group = "errors",
       .resolution = 0.01,
       .scale = Scale::multiplicative,
       .read = [&data, bootstrap = options.bootstrap](Observation& model, const References&) {
         const at::Tensor own = model.log_outputs(AuditSet::cohort)
                                    .gather(1, data.labels_of(AuditSet::cohort).unsqueeze(1))
                                    .neg()
                                    .contiguous();
         const double* first = own.data_ptr<double>();
         return mean_readout("loss on the cohort", "nats",
                             "mean cross-entropy, −log of the probability of the true class",
                             ReadoutDirection::like_retrained, {first, first + own.numel()},
                             bootstrap);
       }});
}

void add_attacks(std::vector<Measure>& measures, const AuditData& data) {
  const double one = 1 / examples_of(data, AuditSet::cohort);
  measures.push_back({.id = "entropy_attack",
                      .group = "attack",
                      .side = LeakSide::above,
                      .resolution = one,
                      .read = [](Observation& model, const References&) {
                        return entropy_attack_readout(
                            entropy_attack(model.log_outputs(AuditSet::cohort),
                                           model.log_outputs(AuditSet::retain),
                                           model.log_outputs(AuditSet::test)));
                      }});
  const auto margin_measure = [&](const std::string& id, AuditSet members, std::size_t which) {
    return Measure{
        .id = id,
        .group = "margin",
        .side = LeakSide::above,
        .resolution = 1 / examples_of(data, members),
        .read = [members, which](Observation& model, const References&) {
          return threshold_attack_readouts(
              threshold_attack(model.margins_on(members), model.margins_on(AuditSet::test)),
              readable(members))[which];
        }};
  };
  measures.push_back(margin_measure("margin_auc_cohort", AuditSet::cohort, 0));
  measures.push_back(margin_measure("margin_tpr_cohort", AuditSet::cohort, 1));
  measures.push_back(margin_measure("margin_auc_retain", AuditSet::retain, 0));
  measures.push_back(margin_measure("margin_tpr_retain", AuditSet::retain, 1));
}

Measure relearn_measure(const AuditData& data, const AuditOptions& options,
                        const Weights& original) {
  return {.id = "relearn_time",
          .group = "relearn",
          .resolution = 1,
          .scale = Scale::multiplicative,
          .read = [&data, &options, &original](Observation& model, const References&) {
            RelearnOptions relearn = options.relearn;
            if (options.progress) {
              relearn.progress = [&options](double share) {
                options.progress("Relearning", share);
              };
            }
            return relearn_readout(relearn_time(*model.audited().model, model.audited().released,
                                                original, data.train, data.cohort,
                                                data.normalization, relearn));
          }};
}

void add_distances(std::vector<Measure>& measures, const AuditOptions& options) {
  for (const AuditSet set : audit_sets) {
    measures.push_back({.id = "distance_" + set_name(set),
                        .group = "distance",
                        .side_by_cohort = set == AuditSet::cohort,
                        .against_references = true,
                        .resolution = 0.01,
                        .scale = Scale::multiplicative,
                        .read = [set, bootstrap = options.bootstrap](Observation& model,
                                                                     const References& references) {
                          at::Tensor sum;
                          for (Observation* reference : references) {
                            const at::Tensor distances =
                                activation_distances(model.outputs(set), reference->outputs(set));
                            sum = sum.defined() ? sum + distances : distances;
                          }
                          return activation_distance_readout(
                              readable(set), sum / static_cast<double>(references.size()),
                              bootstrap);
                        }});
  }
}

Measure tug_of_war_measure(const AuditData& data) {
  return {.id = "tug_of_war",
          .group = "utility",
          .side_by_cohort = true,
          .against_references = true,
          .resolution = 0.01,
          .scale = Scale::shortfall,
          .read = [&data](Observation& model, const References& references) {
            std::vector<SetAnswers> answers;
            for (const AuditSet set : audit_sets) {
              std::vector<at::Tensor> retrained;
              for (Observation* reference : references) {
                retrained.push_back(answered_rightly(*reference, data, set));
              }
              answers.push_back({.set = set_name(set),
                                 .model = answered_rightly(model, data, set),
                                 .retrained = at::stack(retrained)});
            }
            return tug_of_war_readout(tug_of_war(answers));
          }};
}

}  // namespace

bool asked_for(const AuditOptions& options, const std::string& group) {
  return options.groups.empty() ||
         std::find(options.groups.begin(), options.groups.end(), group) != options.groups.end();
}

std::vector<Measure> make_measures(const AuditData& data, const AuditOptions& options,
                                   const Weights& original) {
  std::vector<Measure> all;
  add_errors(all, data, options);
  add_attacks(all, data);
  all.push_back(relearn_measure(data, options, original));
  add_distances(all, options);
  for (Measure& measure : bound_measures(data, options)) all.push_back(std::move(measure));
  all.push_back(tug_of_war_measure(data));
  std::erase_if(all, [&](const Measure& measure) { return !asked_for(options, measure.group); });
  return all;
}

}  // namespace pumice
