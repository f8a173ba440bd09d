#include "pumice/evaluation/leave_pair_out.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "pumice/core/error.h"

namespace pumice {
namespace {

std::vector<MarginFit> fits_without_each(const MarginRows& rows) {
  std::vector<MarginFit> fits;
  for (std::size_t left_out = 0; left_out < rows.size(); ++left_out) {
    fits.push_back(fit_margins(rows, left_out));
  }
  return fits;
}

// The chance that one of the first is above one of the second, ties half.
double area_between(std::vector<double> first, std::vector<double> second) {
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  double pairs = 0;
  std::size_t below = 0, not_above = 0;
  for (const double value : first) {
    while (below < second.size() && second[below] < value) ++below;
    while (not_above < second.size() && second[not_above] <= value) ++not_above;
    pairs += static_cast<double>(below + not_above) / 2;
  }
  return pairs / (static_cast<double>(first.size()) * static_cast<double>(second.size()));
}

void add(const std::vector<double>& scores, double weight, std::vector<double>& sum) {
  for (std::size_t e = 0; e < scores.size(); ++e) sum[e] += weight * scores[e];
}

}  // namespace

std::string variance_text(ShadowVariance variance) {
  switch (variance) {
    case ShadowVariance::pooled:
      return "one variance pooled over all examples and both sides";
    case ShadowVariance::per_example:
      return "a variance for each example and side";
  }
  assert(false);
  return {};
}

MarginFit fit_margins(const MarginRows& rows, std::size_t without) {
  const std::size_t examples = rows.front().size();
  MarginFit fit{.means = std::vector<double>(examples), .squares = std::vector<double>(examples)};
  fit.models = static_cast<double>(rows.size()) - (without < rows.size() ? 1 : 0);
  assert(fit.models >= 1);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (k == without) continue;
    for (std::size_t e = 0; e < examples; ++e) fit.means[e] += rows[k][e] / fit.models;
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (k == without) continue;
    for (std::size_t e = 0; e < examples; ++e) {
      const double distance = rows[k][e] - fit.means[e];
      fit.squares[e] += distance * distance;
    }
  }
  return fit;
}

std::vector<double> log_ratios(const std::vector<double>& margins, const MarginFit& unlearned,
                               const MarginFit& never_saw, ShadowVariance variance) {
  const std::size_t examples = margins.size();
  const double own = unlearned.models - 1, foreign = never_saw.models - 1;
  double common = 0;
  if (variance == ShadowVariance::pooled) {
    const double squares =
        std::accumulate(unlearned.squares.begin(), unlearned.squares.end(), 0.0) +
        std::accumulate(never_saw.squares.begin(), never_saw.squares.end(), 0.0);
    common = squares / (static_cast<double>(examples) * (own + foreign));
    if (!(common > 0)) {
      fail(
          "shadow models: the margins do not differ between models of one side, there is no "
          "variance to compare with; is one model given several times?");
    }
  }
  std::vector<double> scores(examples);
  for (std::size_t e = 0; e < examples; ++e) {
    double near = common, far = common;
    if (variance == ShadowVariance::per_example) {
      near = unlearned.squares[e] / own;
      far = never_saw.squares[e] / foreign;
      if (!(near > 0 && far > 0)) {
        fail(
            "shadow models: all models of one side have the same margin for an example, so that "
            "it has no variance of its own; pool the variance");
      }
    }
    near *= 1 + 1 / unlearned.models;
    far *= 1 + 1 / never_saw.models;
    const double to_unlearned = margins[e] - unlearned.means[e];
    const double to_never_saw = margins[e] - never_saw.means[e];
    scores[e] = (to_never_saw * to_never_saw / far - to_unlearned * to_unlearned / near -
                 std::log(near / far)) /
                2;
  }
  return scores;
}

LeavePairOut leave_pair_out(const MarginRows& unlearned, const MarginRows& never_saw,
                            ShadowVariance variance) {
  assert(unlearned.size() >= 3 && never_saw.size() >= 3);
  const std::vector<MarginFit> unlearned_fits = fits_without_each(unlearned);
  const std::vector<MarginFit> never_saw_fits = fits_without_each(never_saw);
  const std::vector<double> none(unlearned.front().size());
  LeavePairOut result{.unlearned = MarginRows(unlearned.size(), none),
                      .never_saw = MarginRows(never_saw.size(), none)};
  const auto members = static_cast<double>(unlearned.size());
  const auto others = static_cast<double>(never_saw.size());
  for (std::size_t i = 0; i < unlearned.size(); ++i) {
    for (std::size_t j = 0; j < never_saw.size(); ++j) {
      const auto scores = [&](const std::vector<double>& margins) {
        return log_ratios(margins, unlearned_fits[i], never_saw_fits[j], variance);
      };
      const std::vector<double> own = scores(unlearned[i]);
      const std::vector<double> foreign = scores(never_saw[j]);
      result.area += area_between(own, foreign) / (members * others);
      add(own, 1 / others, result.unlearned[i]);
      add(foreign, 1 / members, result.never_saw[j]);
    }
  }
  return result;
}

}  // namespace pumice
