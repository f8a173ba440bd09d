#include "pumice/report/mean_curve.h"

#include <cmath>
#include <limits>

#include "pumice/core/error.h"

namespace pumice::report {

void MeanCurve::add(const Json& positions, const Json& values) {
  if (positions.size() != values.size()) {
    fail("curve: ", values.size(), " values at ", positions.size(), " positions, must be as many");
  }
  std::vector<double> given;
  for (const Json& position : positions) given.push_back(number_of(position));
  if (x.empty()) {
    x = given;
    y.resize(x.size());
  }
  if (given != x) {
    ++left_out;
    return;
  }
  for (std::size_t i = 0; i < x.size(); ++i) y[i].add(number_of(values[i]));
}

double mean_or_infinite(const Spread& spread) {
  if (spread.infinite > 0) return std::numeric_limits<double>::infinity();
  return spread.mean().value_or(std::numeric_limits<double>::quiet_NaN());
}

std::vector<std::string> curve_notes(const std::string& name, const MeanCurve& curve,
                                     bool log_axis) {
  std::size_t infinite = 0, low = 0;
  for (const Spread& value : curve.y) {
    const double mean = mean_or_infinite(value);
    if (!std::isfinite(mean)) {
      ++infinite;
    } else if (log_axis && mean <= 0) {
      ++low;
    }
  }
  std::vector<std::string> notes;
  const auto add = [&](std::size_t count, const std::string& what) {
    if (count == 0) return;
    notes.push_back(
        text(name, ": ", what, " at ", count, " of ", curve.y.size(), " positions, not drawn."));
  };
  add(infinite, "infinite or undefined");
  add(low, "zero or less");
  if (curve.left_out) {
    notes.push_back(
        text(name, ": ", curve.left_out,
             " runs were left out, since their positions differ from the first run's."));
  }
  return notes;
}

Json series_of(const std::string& name, int style, const MeanCurve& curve) {
  Json series{{"name", name}, {"style", style}, {"x", curve.x}};
  Json y = Json::array(), low = Json::array(), high = Json::array();
  bool spread = false;
  for (const Spread& value : curve.y) {
    const double mean = mean_or_infinite(value);
    const double deviation = value.deviation().value_or(0);
    spread = spread || deviation > 0;
    y.push_back(json_of(mean));
    low.push_back(json_of(mean - deviation));
    high.push_back(json_of(mean + deviation));
  }
  series["y"] = y;
  if (spread) {
    series["low"] = low;
    series["high"] = high;
  }
  return series;
}

}  // namespace pumice::report
