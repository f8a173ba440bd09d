// Curves of several runs as one.
#pragma once

#include <string>
#include <vector>

#include "pumice/report/number_text.h"

namespace pumice::report {

// A curve's points and, from two runs on, mean ∓ standard deviation at each. A point at which a run
// is infinite is infinite.
struct MeanCurve {
  std::vector<double> x;
  std::vector<Spread> y;
  std::size_t left_out = 0;  // runs with other positions than the first

  bool empty() const { return x.empty(); }
  // Runs must have as many y as x: Error otherwise.
  void add(const Json& positions, const Json& values);
};

// {"name", "style", "x": […], "y": […], "low": […], "high": […]}
Json series_of(const std::string& name, int style, const MeanCurve& curve);
double mean_or_infinite(const Spread& spread);

// What of a curve has no place on its axes, in one note for each kind: "ntk: infinite at 2 of 9
// positions, not drawn." On a log axis nothing at or below zero has one.
std::vector<std::string> curve_notes(const std::string& name, const MeanCurve& curve,
                                     bool log_axis);

}  // namespace pumice::report
