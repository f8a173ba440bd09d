// The readouts of an audit that look at shadow models.
#include <algorithm>
#include <numeric>

#include "pumice/core/error.h"
#include "pumice/evaluation/klom.h"
#include "pumice/evaluation/observation.h"
#include "pumice/evaluation/shadow_attack.h"

namespace pumice {
namespace {

// Below this a difference as large is hardly chance.
constexpr double small_chance = 0.05;

MarginTable in_order(const MarginTable& table, const at::Tensor& order) {
  return {table.unlearned.index_select(1, order), table.never_saw.index_select(1, order)};
}

// A readout with a value that models without any difference would have: `without`.
Judgement against_no_difference(const Readout& readout, double without) {
  Judgement judgement;
  judgement.band = ReferenceBand{without, without, without, without};
  if (!readout.interval) {
    judgement.because = "too few shadow models for an interval";
  } else if (readout.interval->low > without) {
    judgement.verdict = Verdict::leaks;
    judgement.alone = true;  // what it is compared with is known and not estimated
    judgement.because = text("its whole interval is above ", without,
                             ", what models without a difference would give");
  } else if (readout.interval->high < without) {
    judgement.because = text("its whole interval is below ", without, ", which cannot be");
  } else {
    judgement.verdict = Verdict::like_retrained;
    judgement.because =
        text("its interval holds ", without, ", what models without a difference would give");
  }
  return judgement;
}

Judgement by_chance(const Readout& readout) {
  if (readout.value <= small_chance) {
    return {.verdict = Verdict::leaks,
            .because = text("at most ", small_chance, ": hardly chance")};
  }
  return {.verdict = Verdict::cannot_tell,
          .because = "no difference was seen, which so few models do not prove"};
}

void add_attack(std::vector<JudgedReadout>& readouts, const MarginTable& cohort) {
  const std::vector<Readout> made = shadow_attack_readouts(shadow_attack(cohort));
  const std::vector<std::string> ids{"shadow_auc", "shadow_tpr", "shadow_chance"};
  const std::vector<double> without{0.5, 0.01};
  for (std::size_t i = 0; i < made.size(); ++i) {
    readouts.push_back({.id = ids[i],
                        .group = "shadows",
                        .readout = made[i],
                        .judgement = i < without.size() ? against_no_difference(made[i], without[i])
                                                        : by_chance(made[i])});
  }
}

// The released model beside the shadow models that never saw the cohort, each scored by fits that
// it is no part of.
void add_released(std::vector<JudgedReadout>& readouts, const MarginTable& cohort,
                  const std::vector<double>& margins, const BootstrapOptions& bootstrap) {
  const std::vector<Readout> made = released_attack_readouts(
      released_attack(cohort, at::tensor(margins, at::kDouble)), bootstrap);
  const at::Tensor scores = shadow_attack(cohort, {.relabellings = 0}).never_saw_scores;
  const at::Tensor means = scores.mean(1).contiguous();
  const at::Tensor shares = scores.gt(0).to(at::kDouble).mean(1).contiguous();
  const std::vector<std::string> ids{"shadow_released_ratio", "shadow_released_share"};
  const std::vector<const at::Tensor*> others{&means, &shares};
  for (std::size_t i = 0; i < made.size(); ++i) {
    const double* first = others[i]->data_ptr<double>();
    JudgedReadout judged{.id = ids[i],
                         .group = "shadows",
                         .readout = made[i],
                         .references = {first, first + others[i]->numel()}};
    const double resolution = i == 0 ? 0.01 : 1 / static_cast<double>(margins.size());
    judged.judgement =
        judge(made[i], judged.references, {.resolution = resolution}, LeakSide::above);
    readouts.push_back(std::move(judged));
  }
}

void add_klom(std::vector<JudgedReadout>& readouts, AuditSet set, const MarginTable& table) {
  const Klom distance = klom(set_name(set), table.unlearned, table.never_saw);
  const Readout whole = klom_readouts(distance).front();
  JudgedReadout judged{.id = "klom_" + set_name(set), .group = "shadows", .readout = whole};
  judged.judgement.because = "needs four models that never saw the cohort";
  if (distance.matched && distance.null && distance.null->interval) {
    // The value from all models is comparable with nothing; that from as many as the null value is.
    judged.readout = *distance.matched;
    const Interval& null = *distance.null->interval;
    judged.references = {null.low, null.high};
    const double width = null.high - null.low;
    const double low = null.low - width, high = null.high + width;
    judged.judgement = judge(judged.readout, ReferenceBand{low, high, low, high},
                             set == AuditSet::cohort ? LeakSide::above : LeakSide::below);
  }
  readouts.push_back(std::move(judged));
}

}  // namespace

std::vector<JudgedReadout> judge_shadows(const AuditData& data, const AuditOptions& options,
                                         Observation& subject, const ShadowMargins& shadows) {
  const std::array<const MarginTable*, 3> tables{&shadows.cohort, &shadows.retain, &shadows.test};
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (tables[i]->unlearned.size(1) != data.labels[i].size(0)) {
      fail("shadow models: margins of ", tables[i]->unlearned.size(1), " examples, the ",
           set_name(audit_sets[i]), " set has ", data.labels[i].size(0));
    }
  }
  std::vector<JudgedReadout> readouts;
  const MarginTable cohort = in_order(shadows.cohort, data.given_order[0]);
  add_attack(readouts, cohort);
  add_released(readouts, cohort, subject.margins_on(AuditSet::cohort), options.bootstrap);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    add_klom(readouts, audit_sets[i], in_order(*tables[i], data.given_order[i]));
  }
  return readouts;
}

}  // namespace pumice
