// Numbers of records as people read them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace pumice::report {

using Json = nlohmann::json;

// A number of a record: JSON's own, or "infinite", "-infinite", "undefined" (NaN).
// Throws Error for anything else.
double number_of(const Json& json);
// The way back, for what is drawn and downloaded.
Json json_of(double value);

// Three significant digits: "0.32", "1450", "2.1e-9", "infinite". Where the unit is "share" the
// number is a percentage, and says so: "32 %".
std::string number_text(double value, const std::string& unit = {});

// Several runs' values of one number. Infinite or undefined ones are counted, not averaged.
struct Spread {
  std::vector<double> values;  // finite
  std::size_t infinite = 0, undefined = 0;
  bool censored = false;  // at least one value is only a lower limit

  void add(double value);
  std::size_t count() const { return values.size() + infinite + undefined; }
  std::optional<double> mean() const;       // of the finite values; none if there are none
  std::optional<double> deviation() const;  // sample standard deviation; needs two values
};

// "32.0 ± 3.2 %", "41", "≥ 63 ± 2" (censored), "infinite", "infinite in 1 of 3 runs, else 12.1".
std::string spread_text(const Spread& spread, const std::string& unit = {});

}  // namespace pumice::report
