#include "pumice/evaluation/verdict.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <set>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr double chance_outside = 0.05, chance_alone = 0.005;
constexpr double share_of_floor = 0.25, share_of_single_pair = 3;

// The values on the readout's scale, where chance is symmetric.
class Prediction {
 public:
  Prediction(const std::vector<double>& references, const Yardstick& yardstick)
      : yardstick_(yardstick), count_(references.size()) {
    const auto k = static_cast<double>(count_);
    std::vector<double> sizes;
    for (const double reference : references) sizes.push_back(size_of(reference));
    const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
    const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / k;
    double width = std::max(*high - *low, yardstick.resolution);
    if (yardstick.compares) width = std::max(width, share_of_floor * std::abs(mean));
    band_.low = *low - width;
    band_.high = *high + width;

    std::vector<double> values;
    for (const double size : sizes) values.push_back(on_scale(size));
    centre_ = std::accumulate(values.begin(), values.end(), 0.0) / k;
    double squares = 0;
    for (const double value : values) squares += (value - centre_) * (value - centre_);
    double deviation = std::sqrt(squares / (k - 1));
    if (yardstick.compares && count_ > 2) deviation *= (k - 1) / (k - 2);
    half_ = quantile_of(chance_outside) * deviation * std::sqrt(1 + 1 / k);
    if (yardstick.compares && count_ == 2) half_ = apart(share_of_single_pair * std::abs(mean));
    half_ = std::max(half_, on_scale(band_.high) - centre_);
    band_.least = std::min(band_.low, back(centre_ - half_));
    band_.most = std::max(band_.high, back(centre_ + half_));
  }

  ReferenceBand band() const {
    if (!missing()) return band_;
    const auto share = [](double size) { return std::clamp(1 - size, 0.0, 1.0); };
    return {.low = share(band_.high),
            .high = share(band_.low),
            .least = share(band_.most),
            .most = share(band_.least)};
  }
  // Whether chance would put a retrained model as far out in fewer than chance_alone of all cases.
  bool far(double value) const {
    const double widths = quantile_of(chance_alone) / quantile_of(chance_outside);
    return std::abs(on_scale(size_of(value)) - centre_) > widths * half_;
  }

 private:
  bool missing() const { return yardstick_.scale == Scale::shortfall; }
  // What is compared.
  double size_of(double value) const { return missing() ? 1 - value : value; }
  bool by_ratio() const { return yardstick_.scale == Scale::multiplicative; }
  // The logarithm must stay finite at 0, also where no resolution is set.
  double offset() const { return std::max(yardstick_.resolution, 1e-12); }
  double on_scale(double value) const {
    return by_ratio() ? std::log(std::max(value, 0.0) + offset()) : value;
  }
  double back(double value) const { return by_ratio() ? std::exp(value) - offset() : value; }
  // What a difference of so much at the centre is on the scale.
  double apart(double difference) const {
    return by_ratio() ? std::log1p(difference / std::exp(centre_)) : difference;
  }
  double quantile_of(double chance) const {
    return student_quantile(1 - chance / 2, static_cast<std::int64_t>(count_) - 1);
  }

  const Yardstick& yardstick_;
  std::size_t count_;
  ReferenceBand band_;  // of sizes
  double centre_ = 0, half_ = 0;
};

bool enough(const std::vector<double>& references) {
  return references.size() >= 2 && std::all_of(references.begin(), references.end(),
                                               [](double value) { return std::isfinite(value); });
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
                                            const Yardstick& yardstick) {
  if (!enough(references)) return {};
  return Prediction(references, yardstick).band();
}

Judgement judge(const Readout& readout, const std::vector<double>& references,
                const Yardstick& yardstick, LeakSide side) {
  if (!enough(references)) {
    if (!std::isfinite(readout.value)) return {.because = readout.reason};
    if (references.size() >= 2) return {.because = "a retrained model's own value is not finite"};
    return {.because = text("needs two retrained models to compare with, there ",
                            references.empty() ? "is none" : "is one")};
  }
  const Prediction prediction(references, yardstick);
  Judgement judgement = judge(readout, prediction.band(), side);
  const bool outside =
      judgement.verdict == Verdict::leaks || judgement.verdict == Verdict::over_forgotten;
  judgement.alone = outside && prediction.far(readout.value);
  return judgement;
}

Judgement judge(const Readout& readout, const ReferenceBand& band, LeakSide side) {
  Judgement judgement{.band = band};
  if (!std::isfinite(readout.value)) {
    judgement.because = readout.reason;
    return judgement;
  }
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
  const std::string by_chance = range(band.least, band.most);
  if (readout.value >= band.least && readout.value <= band.most) {
    judgement.because = text(number(readout.value), " is outside ", within, ", but inside ",
                             by_chance, ", where chance puts retrained models");
    return judgement;
  }
  const double low = readout.interval ? readout.interval->low : readout.value;
  const double high = readout.interval ? readout.interval->high : readout.value;
  if (low <= band.most && high >= band.least) {
    judgement.because = text(number(readout.value), " is outside ", by_chance, ", its interval ",
                             range(low, high), " is not");
    return judgement;
  }
  judgement.verdict = below == (side == LeakSide::below) ? Verdict::leaks : Verdict::over_forgotten;
  judgement.because = text(number(readout.value), " is ", below ? "below " : "above ", by_chance,
                           ", where chance puts retrained models");
  if (readout.interval) judgement.because += text(", and so is all of ", range(low, high));
  return judgement;
}

OverallVerdict overall(const std::vector<NamedJudgement>& judgements) {
  std::set<std::string> groups;
  for (const NamedJudgement& one : judgements) {
    if (one.judgement.verdict != Verdict::cannot_tell) groups.insert(one.group);
  }
  const auto with = [&](Verdict verdict) {
    std::vector<std::string> names;
    for (const NamedJudgement& one : judgements) {
      if (one.judgement.verdict == verdict) names.push_back(one.name);
    }
    return names;
  };
  const auto decides = [&](Verdict verdict) {
    std::set<std::string> own;
    bool alone = false;
    for (const NamedJudgement& one : judgements) {
      if (one.judgement.verdict != verdict) continue;
      own.insert(one.group);
      alone = alone || one.judgement.alone;
    }
    return alone || (!own.empty() && own.size() >= std::min<std::size_t>(2, groups.size()));
  };
  const auto like = with(Verdict::like_retrained), leaks = with(Verdict::leaks);
  const auto over = with(Verdict::over_forgotten), unknown = with(Verdict::cannot_tell);
  OverallVerdict result;
  result.verdict = decides(Verdict::leaks)                                 ? Verdict::leaks
                   : decides(Verdict::over_forgotten)                      ? Verdict::over_forgotten
                   : !leaks.empty() || !over.empty()                       ? Verdict::cannot_tell
                   : 2 * like.size() >= judgements.size() && !like.empty() ? Verdict::like_retrained
                                                                           : Verdict::cannot_tell;
  result.sentence = text(like.size(), " of ", judgements.size(), " readouts like retrained");
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty())
      result.sentence += text("; ", names.size(), " ", what, " (", listed(names), ")");
  };
  add("leaking", leaks);
  add("over-forgotten", over);
  add("cannot be judged", unknown);
  if (result.verdict == Verdict::cannot_tell && (!leaks.empty() || !over.empty())) {
    result.sentence += "; what is outside may be chance, more retrained models tell";
  }
  return result;
}

}  // namespace pumice
