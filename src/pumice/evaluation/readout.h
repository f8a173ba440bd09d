// One number of an audit, with what it takes to read it: definition, unit, direction, interval.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pumice {

// When a value is good.
enum class ReadoutDirection {
  like_retrained,  // as close to the retrained model's value as possible; both sides are failures
  small,
  large,
};
std::string direction_text(ReadoutDirection direction);

// [low, high], and how it was made: "Wilson, 95 %".
struct Interval {
  double low = 0;
  double high = 0;
  std::string method = {};
};

struct Readout {
  std::string name;
  std::string unit;        // "share", "nats", "epochs", …
  std::string definition;  // one sentence
  ReadoutDirection direction = ReadoutDirection::like_retrained;
  double value = 0;                       // may be infinite or, where it is not defined, NaN
  std::optional<Interval> interval = {};  // none where no honest one can be given
  std::string reason = {};                // why the value is not finite; empty if it is
};

// JSON has no infinity: such a value is the string "infinite", "-infinite" or "undefined".
nlohmann::json json_number(double value);
// A value that is not finite has a "reason" beside it.
nlohmann::json to_json(const Readout& readout);

// Wilson's score interval of a share k/n. With z the normal quantile of (1 + confidence)/2:
//   (k/n + z²/2n ± z √(k(n−k)/n³ + z²/4n²)) / (1 + z²/n)
// Holds its level for the few examples of a cohort, and is not empty at 0 and 1.
// Throws Error unless 0 <= k <= n, n >= 1 and 0 < confidence < 1.
Interval wilson_interval(std::int64_t successes, std::int64_t trials, double confidence = 0.95);

struct BootstrapOptions {
  double confidence = 0.95;
  std::int64_t resamples = 2000;
  std::uint64_t seed = 1;  // stream "bootstrap"
};

// Percentile bootstrap of the mean: the quantiles (1 ∓ confidence)/2 of the means of `resamples`
// draws of n values with replacement, interpolated between neighbours. The values are sorted first,
// so their order does not matter. None for fewer than two values (nothing is known of their spread)
// or if one is not finite. Throws Error for options out of range. Cost: resamples · n.
std::optional<Interval> bootstrap_interval(std::vector<double> values,
                                           const BootstrapOptions& options = {});

// A share with Wilson's interval. Throws Error if there are no trials.
Readout share_readout(std::string name, std::string definition, ReadoutDirection direction,
                      std::int64_t successes, std::int64_t trials);
// A mean with its bootstrap interval. Throws Error if there are no values.
Readout mean_readout(std::string name, std::string unit, std::string definition,
                     ReadoutDirection direction, const std::vector<double>& values,
                     const BootstrapOptions& options = {});

double normal_quantile(double probability);  // Φ⁻¹, for 0 < probability < 1
// Of Student's distribution with that many degrees of freedom, >= 1; 0 < probability < 1.
double student_quantile(double probability, std::int64_t degrees);
// Of a sample, interpolated between the two nearest of its sorted values; probability in [0, 1].
double quantile(const std::vector<double>& sorted, double probability);

}  // namespace pumice
