#include "pumice/evaluation/readout.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"

namespace pumice {
namespace {

void check_confidence(double confidence) {
  if (!(confidence > 0 && confidence < 1)) {
    fail("confidence: ", confidence, ", must be between 0 and 1");
  }
}

// P(|T| <= t), by the finite sum for whole degrees of freedom: with θ = arctan(t/√ν) it is
// sin θ (1 + 1/2 cos²θ + 1·3/(2·4) cos⁴θ + …) for even ν and
// 2/π (θ + sin θ (cos θ + 2/3 cos³θ + 2·4/(3·5) cos⁵θ + …)) for odd ν, up to the power ν − 2.
double student_within(double t, std::int64_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (std::int64_t power = odd ? 1 : 0; power <= degrees - 2; power += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
  }
  sum *= std::sin(angle);
  return odd ? 2 / std::numbers::pi * (angle + sum) : sum;
}

}  // namespace

std::string direction_text(ReadoutDirection direction) {
  switch (direction) {
    case ReadoutDirection::like_retrained:
      return "as close to retrain as possible";
    case ReadoutDirection::small:
      return "small";
    case ReadoutDirection::large:
      return "large";
  }
  assert(false);
  return {};
}

nlohmann::json json_number(double value) {
  if (std::isnan(value)) return "undefined";
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  return value;
}

nlohmann::json to_json(const Readout& readout) {
  assert(std::isfinite(readout.value) == readout.reason.empty());
  nlohmann::json json{{"name", readout.name},
                      {"unit", readout.unit},
                      {"definition", readout.definition},
                      {"direction", direction_text(readout.direction)},
                      {"value", json_number(readout.value)}};
  if (readout.interval) {
    json["interval"] = {{"low", json_number(readout.interval->low)},
                        {"high", json_number(readout.interval->high)},
                        {"method", readout.interval->method}};
  }
  if (!readout.reason.empty()) json["reason"] = readout.reason;
  return json;
}

double normal_quantile(double probability) {
  assert(probability > 0 && probability < 1);
  return at::special_ndtri(at::scalar_tensor(probability, at::kDouble)).item<double>();
}

double student_quantile(double probability, std::int64_t degrees) {
  assert(probability > 0 && probability < 1 && degrees >= 1);
  const double within = std::abs(2 * probability - 1);
  double low = 0, high = 1;
  while (student_within(high, degrees) < within) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (student_within(middle, degrees) < within ? low : high) = middle;
  }
  return probability < 0.5 ? -low : low;
}

double quantile(const std::vector<double>& sorted, double probability) {
  const double place = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

Interval wilson_interval(std::int64_t successes, std::int64_t trials, double confidence) {
  check_confidence(confidence);
  if (trials < 1) fail("share: of ", trials, " examples, there must be at least one");
  if (successes < 0 || successes > trials) {
    fail("share: ", successes, " of ", trials, ", must be in 0 … ", trials);
  }
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double z = normal_quantile((1 + confidence) / 2);
  const double centre = share + z * z / (2 * n);
  const double half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  // At the ends of the range the formula is exact, its rounding is not.
  return {.low = successes == 0 ? 0 : (centre - half) / scale,
          .high = successes == trials ? 1 : (centre + half) / scale,
          .method = text("Wilson, ", 100 * confidence, " %")};
}

std::optional<Interval> bootstrap_interval(std::vector<double> values,
                                           const BootstrapOptions& options) {
  check_confidence(options.confidence);
  if (options.resamples < 2) fail("bootstrap: ", options.resamples, " resamples, must be >= 2");
  const bool finite =
      std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  if (values.size() < 2 || !finite) return {};
  std::sort(values.begin(), values.end());
  RandomStream stream(options.seed, "bootstrap");
  std::vector<double> means(static_cast<std::size_t>(options.resamples));
  for (double& mean : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[stream.below(values.size())];
    mean = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  return Interval{.low = quantile(means, (1 - options.confidence) / 2),
                  .high = quantile(means, (1 + options.confidence) / 2),
                  .method = text("percentile bootstrap of the mean, ", 100 * options.confidence,
                                 " %, ", options.resamples, " resamples")};
}

Readout share_readout(std::string name, std::string definition, ReadoutDirection direction,
                      std::int64_t successes, std::int64_t trials) {
  const Interval interval = wilson_interval(successes, trials);
  return {.name = std::move(name),
          .unit = "share",
          .definition = std::move(definition),
          .direction = direction,
          .value = static_cast<double>(successes) / static_cast<double>(trials),
          .interval = interval};
}

Readout mean_readout(std::string name, std::string unit, std::string definition,
                     ReadoutDirection direction, const std::vector<double>& values,
                     const BootstrapOptions& options) {
  if (values.empty()) fail(name, ": a mean of no values");
  std::vector<double> sorted = values;  // rounding must not depend on the order either
  std::sort(sorted.begin(), sorted.end());
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  Readout readout{.name = std::move(name),
                  .unit = std::move(unit),
                  .definition = std::move(definition),
                  .direction = direction,
                  .value = sum / static_cast<double>(values.size()),
                  .interval = bootstrap_interval(values, options)};
  if (!std::isfinite(readout.value)) {
    const auto bad = std::count_if(values.begin(), values.end(),
                                   [](double value) { return !std::isfinite(value); });
    readout.reason = text(bad, " of ", values.size(), " values are not finite");
  }
  return readout;
}

}  // namespace pumice
