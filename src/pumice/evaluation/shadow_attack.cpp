#include "pumice/evaluation/shadow_attack.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"

namespace pumice {
namespace {

constexpr double low_rate = 0.01;
constexpr double rounding = 1e-12;  // of an area: sums of the same terms in another order

using Order = std::vector<std::size_t>;

void check_table(const char* name, const at::Tensor& table, std::int64_t least) {
  if (table.dim() != 2 || table.scalar_type() != at::kDouble) {
    fail(name, ": ", table.scalar_type(), " of shape ", table.sizes(),
         ", must be float64, models×examples");
  }
  if (table.size(0) < least) {
    fail(name, ": margins of ", table.size(0), " models, there must be at least ", least);
  }
  if (!table.isfinite().all().item<bool>()) fail(name, ": holds a margin that is not finite");
}

void check_options(const ShadowAttackOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1)) {
    fail("confidence: ", options.confidence, ", must be between 0 and 1");
  }
  if (options.relabellings < 0) fail("relabellings: ", options.relabellings, ", must be >= 0");
}

ShadowVariance chosen_variance(const MarginTable& shadows, const ShadowAttackOptions& options) {
  const auto fewest = std::min(shadows.unlearned.size(0), shadows.never_saw.size(0));
  return options.variance.value_or(fewest >= std::max<std::int64_t>(options.per_example_from, 5)
                                       ? ShadowVariance::per_example
                                       : ShadowVariance::pooled);
}

void check_shadows(const MarginTable& shadows, const ShadowAttackOptions& options,
                   std::int64_t least) {
  check_options(options);
  if (options.variance == ShadowVariance::per_example) least = 5;
  check_table("unlearned shadow models", shadows.unlearned, least);
  check_table("shadow models that never saw the examples", shadows.never_saw, least);
  if (shadows.unlearned.size(1) != shadows.never_saw.size(1) || shadows.unlearned.size(1) < 1) {
    fail("shadow models: margins of ", shadows.unlearned.size(1), " and ",
         shadows.never_saw.size(1), " examples, both must be of the same one or more");
  }
}

MarginRows to_rows(const at::Tensor& table) {
  const at::Tensor wide = table.contiguous();
  const auto* first = wide.data_ptr<double>();
  MarginRows rows;
  for (std::int64_t k = 0; k < wide.size(0); ++k) {
    rows.emplace_back(first + k * wide.size(1), first + (k + 1) * wide.size(1));
  }
  return rows;
}

Order sorted_order(const MarginRows& keys) {
  Order order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  return order;
}

Order order_of_models(MarginRows rows) {
  for (std::vector<double>& row : rows) std::sort(row.begin(), row.end());
  return sorted_order(rows);
}

// Margins in an order of models and examples that depends on their values alone, so that sums round
// and random draws fall alike however they came.
struct OrderedMargins {
  MarginRows unlearned, never_saw;
  std::vector<double> released;                        // empty if there is none
  Order unlearned_models, never_saw_models, examples;  // place here → place as given

  OrderedMargins(const MarginTable& shadows, const std::vector<double>& given_release) {
    const MarginRows members = to_rows(shadows.unlearned), others = to_rows(shadows.never_saw);
    unlearned_models = order_of_models(members);
    never_saw_models = order_of_models(others);
    MarginRows columns(members.front().size());
    for (std::size_t e = 0; e < columns.size(); ++e) {
      for (const std::size_t k : unlearned_models) columns[e].push_back(members[k][e]);
      for (const std::size_t k : never_saw_models) columns[e].push_back(others[k][e]);
      if (!given_release.empty()) columns[e].push_back(given_release[e]);
    }
    examples = sorted_order(columns);
    const auto rearranged = [&](const std::vector<double>& row) {
      std::vector<double> result;
      for (const std::size_t e : examples) result.push_back(row[e]);
      return result;
    };
    for (const std::size_t k : unlearned_models) unlearned.push_back(rearranged(members[k]));
    for (const std::size_t k : never_saw_models) never_saw.push_back(rearranged(others[k]));
    if (!given_release.empty()) released = rearranged(given_release);
  }

  at::Tensor as_given(const MarginRows& rows, const Order& models) const {
    at::Tensor table = at::empty(
        {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(examples.size())},
        at::kDouble);
    auto* values = table.data_ptr<double>();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      for (std::size_t e = 0; e < examples.size(); ++e) {
        values[models[k] * examples.size() + examples[e]] = rows[k][e];
      }
    }
    return table;
  }
};

ThresholdAttack curve_of(const LeavePairOut& scores) {
  const auto joined = [](const MarginRows& rows) {
    std::vector<double> values;
    for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
    return values;
  };
  return threshold_attack(joined(scores.unlearned), joined(scores.never_saw));
}

// Values of both numbers with each model of one side taken out.
struct Deletions {
  std::vector<double> areas, rates;
};

Deletions delete_each(const MarginRows& rows, const auto& scores_of) {
  Deletions result;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    MarginRows rest = rows;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
    const LeavePairOut scores = scores_of(rest);
    result.areas.push_back(scores.area);
    result.rates.push_back(curve_of(scores).true_positive_rate_at(low_rate));
  }
  return result;
}

double deletion_variance(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares * (n - 1) / n;
}

// None if the value is the same whichever model is taken out.
std::optional<Interval> jackknife_interval(double value, const std::vector<double>& first,
                                           const std::vector<double>& second, double confidence) {
  const double deviation = std::sqrt(deletion_variance(first) + deletion_variance(second));
  if (deviation <= rounding) return {};
  const auto fewest = static_cast<std::int64_t>(std::min(first.size(), second.size()));
  const double half = student_quantile((1 + confidence) / 2, fewest - 1) * deviation;
  return Interval{.low = std::max(value - half, 0.0),
                  .high = std::min(value + half, 1.0),
                  .method = text("jackknife over models, Student, ", 100 * confidence, " %")};
}

void add_intervals(ShadowAttack& attack, const OrderedMargins& ordered, double confidence) {
  if (ordered.unlearned.size() < 4 || ordered.never_saw.size() < 4) return;
  const Deletions first = delete_each(ordered.unlearned, [&](const MarginRows& rest) {
    return leave_pair_out(rest, ordered.never_saw, attack.variance);
  });
  const Deletions second = delete_each(ordered.never_saw, [&](const MarginRows& rest) {
    return leave_pair_out(ordered.unlearned, rest, attack.variance);
  });
  // Where no model changes anything (an area of 1, say), each model counts as one observation.
  const std::string alike = ", models as observations since none changes the value";
  attack.area_interval = jackknife_interval(attack.area, first.areas, second.areas, confidence);
  if (!attack.area_interval) {
    attack.area_interval = area_interval(std::clamp(attack.area, 0.0, 1.0), attack.unlearned_models,
                                         attack.never_saw_models, confidence);
    attack.area_interval->method += alike;
  }
  const double rate = attack.pairs.true_positive_rate_at(low_rate);
  attack.rate_interval = jackknife_interval(rate, first.rates, second.rates, confidence);
  if (!attack.rate_interval) {
    const auto models = static_cast<double>(attack.unlearned_models);
    attack.rate_interval =
        wilson_interval(std::llround(rate * models), attack.unlearned_models, confidence);
    attack.rate_interval->method += alike;
  }
}

// In how many ways K_u of all models can be called unlearned.
double number_of_labellings(std::size_t unlearned, std::size_t never_saw) {
  double number = 1;
  for (std::size_t k = 1; k <= unlearned; ++k) {
    number *= static_cast<double>(never_saw + k) / static_cast<double>(k);
  }
  return std::round(number);
}

double chance_of(double area, const OrderedMargins& ordered, ShadowVariance variance,
                 const ShadowAttackOptions& options) {
  MarginRows all = ordered.unlearned;
  all.insert(all.end(), ordered.never_saw.begin(), ordered.never_saw.end());
  const auto is_as_large = [&](const std::vector<bool>& called_unlearned) {
    MarginRows members, others;
    for (std::size_t k = 0; k < all.size(); ++k) {
      (called_unlearned[k] ? members : others).push_back(all[k]);
    }
    return leave_pair_out(members, others, variance).area >= area - rounding;
  };
  std::vector<bool> labels(all.size(), false);
  std::fill_n(labels.begin(), ordered.unlearned.size(), true);
  std::int64_t as_large = 0, tried = 0;
  if (number_of_labellings(ordered.unlearned.size(), ordered.never_saw.size()) <=
      static_cast<double>(options.relabellings + 1)) {
    do {  // from the true labels, the last in their order, down to the first
      as_large += is_as_large(labels);
      ++tried;
    } while (std::prev_permutation(labels.begin(), labels.end()));
  } else {
    RandomStream stream(options.seed, "relabelling");
    as_large = tried = 1;  // the true labels
    for (; tried <= options.relabellings; ++tried) {
      const auto order = stream.permutation(static_cast<std::int64_t>(all.size()));
      std::vector<bool> drawn(all.size());
      for (std::size_t k = 0; k < all.size(); ++k) {
        drawn[static_cast<std::size_t>(order[k])] = labels[k];
      }
      as_large += is_as_large(drawn);
    }
  }
  return static_cast<double>(as_large) / static_cast<double>(tried);
}

}  // namespace

ShadowAttack shadow_attack(const MarginTable& shadows, const ShadowAttackOptions& options) {
  check_shadows(shadows, options, 3);
  const OrderedMargins ordered(shadows, {});
  ShadowAttack attack{.unlearned_models = shadows.unlearned.size(0),
                      .never_saw_models = shadows.never_saw.size(0),
                      .examples = shadows.unlearned.size(1),
                      .variance = chosen_variance(shadows, options)};
  const LeavePairOut scores = leave_pair_out(ordered.unlearned, ordered.never_saw, attack.variance);
  attack.area = scores.area;
  attack.pairs = curve_of(scores);
  attack.unlearned_scores = ordered.as_given(scores.unlearned, ordered.unlearned_models);
  attack.never_saw_scores = ordered.as_given(scores.never_saw, ordered.never_saw_models);
  add_intervals(attack, ordered, options.confidence);
  if (options.relabellings > 0) {
    attack.chance = chance_of(attack.area, ordered, attack.variance, options);
  }
  return attack;
}

std::string ShadowAttack::brief() const {
  return text("shadow attack on ", examples, " examples with ", unlearned_models,
              " unlearned models and ", never_saw_models, " that never saw them, ",
              variance_text(variance), ": area ", area,
              area_interval ? text(" [", area_interval->low, ", ", area_interval->high, "]") : "",
              chance ? text(", chance ", *chance, " without a difference") : "");
}

std::vector<Readout> shadow_attack_readouts(const ShadowAttack& attack) {
  const std::string how = text(" (", attack.unlearned_models, " and ", attack.never_saw_models,
                               " models, ", variance_text(attack.variance), ")");
  std::vector<Readout> readouts;
  readouts.push_back(
      {.name = "area under the curve of the shadow attack",
       .unit = "share",
       .definition =
           "chance that an example scores higher as unlearned under an unlearned model than one "
           "does under a model that never saw them, by the likelihood ratio of their margins "
           "fitted from other models" +
           how + "; a perfect retraining has 0.5",
       .direction = ReadoutDirection::like_retrained,
       .value = attack.area,
       .interval = attack.area_interval});
  readouts.push_back(
      {.name = "true positive rate at 1 % false positive rate of the shadow attack",
       .unit = "share",
       .definition =
           "share of pairs of an unlearned model and an example above the smallest likelihood "
           "ratio that at most 1 % of the pairs with models that never saw the example reach" +
           how + "; a perfect retraining has 0.01",
       .direction = ReadoutDirection::like_retrained,
       .value = attack.pairs.true_positive_rate_at(low_rate),
       .interval = attack.rate_interval});
  if (attack.chance) {
    readouts.push_back(
        {.name = "chance of the shadow attack's area without a difference",
         .unit = "probability",
         .definition = "share of random relabellings of the shadow models that give an area "
                       "at least as large; a small one is evidence of a trace" +
                       how,
         .direction = ReadoutDirection::large,
         .value = *attack.chance});
  }
  return readouts;
}

ReleasedAttack released_attack(const MarginTable& shadows, const at::Tensor& released,
                               const ShadowAttackOptions& options) {
  check_shadows(shadows, options, 2);
  if (released.dim() != 1 || released.scalar_type() != at::kDouble ||
      released.size(0) != shadows.unlearned.size(1)) {
    fail("released model: ", released.scalar_type(), " of shape ", released.sizes(), ", must be ",
         shadows.unlearned.size(1), " margins in float64, one for each example of the shadows");
  }
  if (!released.isfinite().all().item<bool>()) {
    fail("released model: holds a margin that is not finite");
  }
  const OrderedMargins ordered(shadows, to_rows(released.unsqueeze(0)).front());
  ReleasedAttack attack{.unlearned_models = shadows.unlearned.size(0),
                        .never_saw_models = shadows.never_saw.size(0),
                        .variance = chosen_variance(shadows, options)};
  const std::vector<double> ratios =
      log_ratios(ordered.released, fit_margins(ordered.unlearned, ordered.unlearned.size()),
                 fit_margins(ordered.never_saw, ordered.never_saw.size()), attack.variance);
  attack.log_ratios.resize(ratios.size());
  for (std::size_t e = 0; e < ratios.size(); ++e) {
    attack.log_ratios[ordered.examples[e]] = ratios[e];
    attack.called += ratios[e] > 0;
  }
  return attack;
}

std::vector<Readout> released_attack_readouts(const ReleasedAttack& attack,
                                              const BootstrapOptions& options) {
  const std::string how = text(" (", attack.unlearned_models, " and ", attack.never_saw_models,
                               " models, ", variance_text(attack.variance), ")");
  Readout mean = mean_readout("log-likelihood ratio of the released model", "nats",
                              "mean over the examples of log p(margin | unlearned) − log p(margin "
                              "| never saw), both fitted "
                              "from shadow models" +
                                  how,
                              ReadoutDirection::like_retrained, attack.log_ratios, options);
  Readout share =
      share_readout("share of examples that the shadow attack calls trained on",
                    "share of the examples whose margin under the released model is likelier for "
                    "models that were "
                    "trained on them and unlearned than for models that never saw them" +
                        how,
                    ReadoutDirection::like_retrained, attack.called,
                    static_cast<std::int64_t>(attack.log_ratios.size()));
  for (Readout* readout : {&mean, &share}) {
    if (readout->interval) readout->interval->method += ", examples of one model as if independent";
  }
  return {mean, share};
}

}  // namespace pumice
