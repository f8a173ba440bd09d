#include "pumice/evaluation/klom.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"

namespace pumice {
namespace {

using Models = std::vector<std::vector<double>>;  // a row for each model

void check_options(const KlomOptions& options) {
  if (options.bins < 1) fail("bins: ", options.bins, ", must be >= 1");
  if (!(options.clip > 0)) fail("clip: ", options.clip, ", must be > 0");
  if (!(options.smoothing > 0) || !std::isfinite(options.smoothing)) {
    fail("smoothing: ", options.smoothing, ", must be > 0");
  }
  if (!(options.percentile >= 0 && options.percentile <= 1)) {
    fail("percentile: ", options.percentile, ", must be in [0, 1]");
  }
  if (options.splits < 1) fail("splits: ", options.splits, ", must be >= 1");
}

void check_table(const char* name, const at::Tensor& table) {
  if (table.dim() != 2 || table.scalar_type() != at::kDouble) {
    fail("KLOM: ", name, " models: ", table.scalar_type(), " of shape ", table.sizes(),
         ", must be float64, models×examples");
  }
  if (table.size(0) < 2) {
    fail("KLOM: margins of ", table.size(0), " ", name, " models, there must be at least 2");
  }
  if (!table.isfinite().all().item<bool>()) {
    fail("KLOM: a margin of the ", name, " models is not finite");
  }
}

// Sorted, so that random splits do not depend on the order in which models and examples came.
Models sorted_models(const at::Tensor& table) {
  const at::Tensor columns_first = table.contiguous();
  const auto* first = columns_first.data_ptr<double>();
  std::vector<std::pair<std::vector<double>, std::vector<double>>> keyed;
  for (std::int64_t k = 0; k < table.size(0); ++k) {
    std::vector<double> row(first + k * table.size(1), first + (k + 1) * table.size(1));
    std::vector<double> key = row;
    std::sort(key.begin(), key.end());
    keyed.emplace_back(std::move(key), std::move(row));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Models models;
  for (auto& [key, row] : keyed) models.push_back(std::move(row));
  return models;
}

std::vector<double> divergences_of(const Models& unlearned, const Models& retrained,
                                   const KlomOptions& options) {
  const auto column = [](const Models& models, std::size_t example) {
    std::vector<double> values;
    for (const auto& model : models) values.push_back(model[example]);
    return values;
  };
  std::vector<double> values;
  for (std::size_t e = 0; e < unlearned.front().size(); ++e) {
    values.push_back(histogram_divergence(column(unlearned, e), column(retrained, e), options));
  }
  return values;
}

double percentile_of(std::vector<double> values, double percentile) {
  std::sort(values.begin(), values.end());
  return quantile(values, percentile);
}

Models chosen(const Models& models, const std::vector<std::int64_t>& order, std::size_t from,
              std::size_t count) {
  Models result;
  for (std::size_t i = from; i < from + count; ++i) {
    result.push_back(models[static_cast<std::size_t>(order[i])]);
  }
  return result;
}

Readout over_splits(std::string name, std::string definition, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return {.name = std::move(name),
          .unit = "nats",
          .definition = std::move(definition),
          .direction = ReadoutDirection::small,
          .value = mean,
          .interval = Interval{
              .low = values.front(),
              .high = values.back(),
              .method = text("smallest and largest of ", values.size(), " random splits")}};
}

std::string how_text(const Klom& klom) {
  return text(klom.options.bins, " bins, margins cut to ±", klom.options.clip, ", ",
              empty_bins_text(klom.options.empty, klom.options.smoothing));
}

void add_null(Klom& result, const Models& unlearned, const Models& retrained) {
  const std::size_t half = std::min(retrained.size() / 2, unlearned.size());
  if (half < 2) return;
  result.half = static_cast<std::int64_t>(half);
  RandomStream stream(result.options.seed, "klom");
  std::vector<double> null, matched;
  for (std::int64_t split = 0; split < result.options.splits; ++split) {
    const auto order = stream.permutation(result.retrained_models);
    const auto drawn = stream.permutation(result.unlearned_models);
    const Models reference = chosen(retrained, order, 0, half);
    const auto percentile = [&](const Models& models) {
      return percentile_of(divergences_of(models, reference, result.options),
                           result.options.percentile);
    };
    null.push_back(percentile(chosen(retrained, order, half, half)));
    matched.push_back(percentile(chosen(unlearned, drawn, 0, half)));
  }
  const double percent = 100 * result.options.percentile;
  result.null =
      over_splits("KLOM on " + result.set + ", null value",
                  text(percent,
                       "th percentile over the examples of the divergence between the "
                       "histograms of margins of two disjoint sets of ",
                       half,
                       " retrained models, mean over random splits: what no difference looks "
                       "like with so few models (",
                       how_text(result), ")"),
                  std::move(null));
  result.matched = over_splits(
      "KLOM on " + result.set + ", as many models as the null value",
      text("the same with ", half, " unlearned against ", half,
           " retrained models, to be compared with the null value (", how_text(result), ")"),
      std::move(matched));
}

}  // namespace

std::string empty_bins_text(EmptyBins empty, double smoothing) {
  switch (empty) {
    case EmptyBins::floor:
      return text("shares of retrained models at least ", smoothing);
    case EmptyBins::pseudo_count:
      return text(smoothing, " added to every count");
  }
  assert(false);
  return {};
}

double histogram_divergence(const std::vector<double>& unlearned,
                            const std::vector<double>& retrained, const KlomOptions& options) {
  check_options(options);
  if (unlearned.empty() || retrained.empty()) fail("KLOM: a histogram of no models");
  const auto cut = [&](double value) { return std::clamp(value, -options.clip, options.clip); };
  const auto [low_u, high_u] = std::minmax_element(unlearned.begin(), unlearned.end());
  const auto [low_r, high_r] = std::minmax_element(retrained.begin(), retrained.end());
  const double low = cut(std::min(*low_u, *low_r)), high = cut(std::max(*high_u, *high_r));
  const auto bins = static_cast<std::size_t>(options.bins);
  const auto shares = [&](const std::vector<double>& values) {
    std::vector<double> counts(bins);
    for (const double value : values) {
      const double place =
          high > low ? (cut(value) - low) / (high - low) * static_cast<double>(bins) : 0;
      counts[std::min(static_cast<std::size_t>(place), bins - 1)] += 1;
    }
    double sum = static_cast<double>(values.size());
    if (options.empty == EmptyBins::pseudo_count) {
      for (double& count : counts) count += options.smoothing;
      sum += options.smoothing * static_cast<double>(bins);
    }
    for (double& count : counts) count /= sum;
    return counts;
  };
  const std::vector<double> p = shares(unlearned);
  std::vector<double> q = shares(retrained);
  if (options.empty == EmptyBins::floor) {
    for (std::size_t b = 0; b < bins; ++b) {
      if (p[b] > 0) q[b] = std::max(q[b], options.smoothing);
    }
    const double sum = std::accumulate(q.begin(), q.end(), 0.0);
    for (double& share : q) share /= sum;
  }
  double divergence = 0;
  for (std::size_t b = 0; b < bins; ++b) {
    if (p[b] > 0) divergence += p[b] * std::log(p[b] / q[b]);
  }
  return divergence;
}

Klom klom(const std::string& set, const at::Tensor& unlearned, const at::Tensor& retrained,
          const KlomOptions& options) {
  check_options(options);
  check_table("unlearned", unlearned);
  check_table("retrained", retrained);
  if (unlearned.size(1) != retrained.size(1) || unlearned.size(1) < 1) {
    fail("KLOM: margins of ", unlearned.size(1), " and ", retrained.size(1),
         " examples, both must be of the same one or more");
  }
  const Models own = sorted_models(unlearned), reference = sorted_models(retrained);
  Klom result{.set = set,
              .unlearned_models = unlearned.size(0),
              .retrained_models = retrained.size(0),
              .divergences = divergences_of(own, reference, options),
              .options = options};
  result.value = percentile_of(result.divergences, options.percentile);
  add_null(result, own, reference);
  return result;
}

std::vector<Readout> klom_readouts(const Klom& klom) {
  std::vector<Readout> readouts;
  readouts.push_back(
      {.name = "KLOM on " + klom.set,
       .unit = "nats",
       .definition =
           text(100 * klom.options.percentile,
                "th percentile over the examples of the divergence between the histograms of their "
                "margins under ",
                klom.unlearned_models, " unlearned and ", klom.retrained_models,
                " retrained models (", how_text(klom), ")"),
       .direction = ReadoutDirection::small,
       .value = klom.value});
  if (klom.null) readouts.push_back(*klom.null);
  if (klom.matched) readouts.push_back(*klom.matched);
  return readouts;
}

}  // namespace pumice
