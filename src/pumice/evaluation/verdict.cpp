#include "pumice/evaluation/verdict.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "pumice/core/error.h"

namespace pumice {
namespace {

double width_of(const std::vector<double>& references, double resolution) {
  const auto [low, high] = std::minmax_element(references.begin(), references.end());
  return std::max(*high - *low, resolution);
}

std::string number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

std::string range(double low, double high) {
  return text(number(low), " … ", number(high));
}

// "error on the cohort, membership attack and 2 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    list += (i ? ", " : "") + names[i];
  }
  return names.size() > most ? text(list, " and ", names.size() - most, " more") : list;
}

}  // namespace

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::like_retrained:
      return "like retrained";
    case Verdict::leaks:
      return "leaks";
    case Verdict::over_forgotten:
      return "over-forgotten";
    case Verdict::cannot_tell:
      return "cannot tell";
  }
  assert(false);
  return {};
}

std::optional<ReferenceBand> reference_band(const std::vector<double>& references,
                                            double resolution) {
  const bool finite = std::all_of(references.begin(), references.end(),
                                  [](double value) { return std::isfinite(value); });
  if (references.size() < 2 || !finite) return {};
  const double width = width_of(references, resolution);
  const auto [low, high] = std::minmax_element(references.begin(), references.end());
  return ReferenceBand{.low = *low - width, .high = *high + width};
}

Judgement judge(const Readout& readout, const std::vector<double>& references, double resolution,
                LeakSide side) {
  Judgement judgement;
  judgement.band = reference_band(references, resolution);
  if (!std::isfinite(readout.value)) {
    judgement.because = readout.reason;
    return judgement;
  }
  if (!judgement.band) {
    judgement.because = references.size() < 2
                            ? text("needs two retrained models to compare with, there ",
                                   references.size() == 1 ? "is one" : "is none")
                            : "a retrained model's own value is not finite";
    return judgement;
  }
  const ReferenceBand band = *judgement.band;
  const std::string within = range(band.low, band.high);
  const bool below = readout.value < band.low;
  const bool above = readout.value > band.high;
  if (!below && !above) {
    judgement.verdict = Verdict::like_retrained;
    judgement.because = text(number(readout.value), " is inside ", within);
    return judgement;
  }
  const bool better = (below && readout.direction == ReadoutDirection::small) ||
                      (above && readout.direction == ReadoutDirection::large);
  if (better) {
    judgement.verdict = Verdict::like_retrained;
    judgement.because = text(number(readout.value), " is better than ", within);
    return judgement;
  }
  const double width = width_of(references, resolution);
  const double low = readout.interval ? readout.interval->low : readout.value - width;
  const double high = readout.interval ? readout.interval->high : readout.value + width;
  if (low <= band.high && high >= band.low) {
    judgement.because = text(number(readout.value), " is outside ", within, ", its interval ",
                             range(low, high), " is not");
    return judgement;
  }
  judgement.verdict = below == (side == LeakSide::below) ? Verdict::leaks : Verdict::over_forgotten;
  judgement.because = text(number(readout.value), " is ", below ? "below " : "above ", within,
                           ", and so is all of ", range(low, high));
  return judgement;
}

OverallVerdict overall(const std::vector<std::pair<std::string, Verdict>>& verdicts_by_name) {
  const auto with = [&](Verdict verdict) {
    std::vector<std::string> names;
    for (const auto& [name, own] : verdicts_by_name) {
      if (own == verdict) names.push_back(name);
    }
    return names;
  };
  const auto like = with(Verdict::like_retrained), leaks = with(Verdict::leaks);
  const auto over = with(Verdict::over_forgotten), unknown = with(Verdict::cannot_tell);
  OverallVerdict result;
  result.verdict = !leaks.empty()  ? Verdict::leaks
                   : !over.empty() ? Verdict::over_forgotten
                   : !like.empty() ? Verdict::like_retrained
                                   : Verdict::cannot_tell;
  result.sentence = text(like.size(), " of ", verdicts_by_name.size(), " readouts like retrained");
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty())
      result.sentence += text("; ", names.size(), " ", what, " (", listed(names), ")");
  };
  add("leaking", leaks);
  add("over-forgotten", over);
  add("cannot be judged", unknown);
  return result;
}

}  // namespace pumice
