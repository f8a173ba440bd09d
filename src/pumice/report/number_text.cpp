#include "pumice/report/number_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "pumice/core/error.h"

namespace pumice::report {
namespace {

constexpr double large = 1e6, small = 1e-4;  // beyond them: powers of ten

std::string fixed(double value, int decimals) {
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%.*f", decimals, value);
  const std::string text = out.data();
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  return zero && text.starts_with('-') ? text.substr(1) : text;
}

// "2.1e-09" → "2.1e-9"
std::string scientific(double value) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.3g", value);
  std::string text = out.data();
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  std::size_t digit = e + 2;
  while (digit + 1 < text.size() && text[digit] == '0') text.erase(digit, 1);
  if (text[e + 1] == '+') text.erase(e + 1, 1);
  return text;
}

int decimals_for(double value, int digits) {
  if (value == 0) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 6);
}

bool needs_powers(double value) {
  return value != 0 && (std::abs(value) >= large || std::abs(value) < small);
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string plain(double value) {
  if (std::isnan(value)) return "undefined";
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  if (needs_powers(value)) return scientific(value);
  return without_trailing_zeros(fixed(value, decimals_for(value, 3)));
}

std::string with_deviation(double mean, double deviation) {
  if (deviation < 1e-9 * std::abs(mean)) deviation = 0;  // equal values, rounded
  if (needs_powers(mean) || (deviation != 0 && needs_powers(deviation))) {
    return scientific(mean) + " ± " + scientific(deviation);
  }
  if (deviation == 0) return plain(mean) + " ± 0";
  // Two digits of the deviation if it begins with 1 or 2, else one; but no more of the mean than
  // three, unless the deviation would vanish.
  const int first = static_cast<int>(scientific(deviation)[0] - '0');
  const int wanted = decimals_for(deviation, first < 3 ? 2 : 1);
  const int decimals =
      std::max(std::min(wanted, decimals_for(mean, 3)), decimals_for(deviation, 1));
  return fixed(mean, decimals) + " ± " + fixed(deviation, decimals);
}

}  // namespace

double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) {
    const std::string& word = json.get_ref<const std::string&>();
    if (word == "infinite") return std::numeric_limits<double>::infinity();
    if (word == "-infinite") return -std::numeric_limits<double>::infinity();
    if (word == "undefined") return std::numeric_limits<double>::quiet_NaN();
  }
  fail(json.dump().substr(0, 40), ", must be a number or \"infinite\"");
}

Json json_of(double value) {
  return std::isfinite(value) ? Json(value) : Json(plain(value));
}

std::string number_text(double value, const std::string& unit) {
  if (unit != "share" || !std::isfinite(value)) return plain(value);
  return plain(100 * value) + " %";
}

void Spread::add(double value) {
  if (std::isnan(value)) {
    ++undefined;
  } else if (std::isinf(value)) {
    ++infinite;
  } else {
    values.push_back(value);
  }
}

std::optional<double> Spread::mean() const {
  if (values.empty()) return {};
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> Spread::deviation() const {
  if (values.size() < 2) return {};
  const double centre = *mean();
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::string spread_text(const Spread& spread, const std::string& unit) {
  const double factor = unit == "share" ? 100 : 1;
  std::string finite;
  if (const auto mean = spread.mean()) {
    finite = spread.censored ? "≥ " : "";
    const auto deviation = spread.deviation();
    finite +=
        deviation ? with_deviation(factor * *mean, factor * *deviation) : plain(factor * *mean);
    if (unit == "share") finite += " %";
  }
  const auto odd = [&](std::size_t count, const std::string& word) {
    if (count == spread.count()) return word;
    return text(word, " in ", count, " of ", spread.count(), " runs",
                finite.empty() ? "" : ", else " + finite);
  };
  if (spread.infinite > 0) return odd(spread.infinite, "infinite");
  if (spread.undefined > 0) return odd(spread.undefined, "undefined");
  return finite.empty() ? "–" : finite;
}

}  // namespace pumice::report
