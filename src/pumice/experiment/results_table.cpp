#include "pumice/experiment/results_table.h"

#include <cmath>
#include <cstdio>
#include <map>

#include "pumice/core/error.h"

namespace pumice {
namespace {

using Json = nlohmann::json;

struct Column {
  const char* title;
  const char* id;  // of the readout
  double factor;
  int digits;
};
constexpr Column columns[] = {{"cohort err %", "cohort_error", 100, 1},
                              {"retain err %", "retain_error", 100, 1},
                              {"test err %", "test_error", 100, 1},
                              {"attack", "entropy_attack", 1, 2},
                              {"distance", "distance_cohort", 1, 3}};

const Json* readout(const Json& run, const std::string& label, const std::string& id) {
  const Json& method = run.at("methods").at(label);
  if (!method.contains("audit")) return nullptr;
  for (const Json& one : method.at("audit").at("readouts")) {
    if (one.at("id") == id) return &one;
  }
  return nullptr;
}

std::vector<Json> values_of(const Json& experiment, const std::string& label,
                            const std::string& id) {
  std::vector<Json> values;
  for (const Json& run : experiment.at("runs")) {
    if (const Json* one = readout(run, label, id)) values.push_back(one->at("value"));
  }
  return values;
}

// The retrained models' own values, as every method's audit has them beside its own.
std::vector<Json> reference_values(const Json& experiment, const std::string& label,
                                   const std::string& id) {
  std::vector<Json> values;
  for (const Json& run : experiment.at("runs")) {
    const Json* one = readout(run, label, id);
    if (!one) continue;
    for (const Json& value : one->at("references")) values.push_back(value);
  }
  return values;
}

std::vector<Json> original_values(const Json& experiment, const std::string& label,
                                  const std::string& id) {
  std::vector<Json> values;
  for (const Json& run : experiment.at("runs")) {
    const Json* one = readout(run, label, id);
    if (one && one->contains("original")) values.push_back(one->at("original"));
  }
  return values;
}

std::string cell(const std::vector<Json>& values, double factor, int digits) {
  const OverRuns all = over_runs(values);
  if (all.count == 0) return "-";
  char buffer[64];
  if (all.count == 1) {
    std::snprintf(buffer, sizeof buffer, "%.*f", digits, factor * all.mean);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.*f ± %.*f", digits, factor * all.mean, digits,
                  factor * all.deviation);
  }
  return buffer;
}

// "leaks" or, where runs differ, "leaks 2, like retrained 1".
std::string verdicts(const Json& experiment, const std::string& label) {
  std::map<std::string, int> counts;
  for (const Json& run : experiment.at("runs")) {
    const Json& method = run.at("methods").at(label);
    counts[method.contains("audit")
               ? method.at("audit").at("overall").at("verdict").get<std::string>()
               : "no result"]++;
  }
  if (counts.size() == 1) return counts.begin()->first;
  std::string list;
  for (const auto& [verdict, count] : counts) {
    list += text(list.empty() ? "" : ", ", verdict, " ", count);
  }
  return list;
}

// Characters, not bytes: ± takes two.
std::string padded(const std::string& word, std::size_t width) {
  std::size_t characters = 0;
  for (const char byte : word) characters += (byte & 0xC0) != 0x80 ? 1 : 0;
  return word + std::string(width > characters ? width - characters : 1, ' ');
}

}  // namespace

OverRuns over_runs(const std::vector<Json>& values) {
  OverRuns result;
  double sum = 0, squares = 0;
  for (const Json& value : values) {
    if (!value.is_number()) {
      ++result.left_out;
      continue;
    }
    ++result.count;
    sum += value.get<double>();
  }
  if (result.count == 0) return result;
  result.mean = sum / static_cast<double>(result.count);
  for (const Json& value : values) {
    if (value.is_number()) squares += std::pow(value.get<double>() - result.mean, 2);
  }
  if (result.count > 1) {
    result.deviation = std::sqrt(squares / static_cast<double>(result.count - 1));
  }
  return result;
}

std::string results_table(const Json& experiment) {
  constexpr std::size_t name_width = 20, width = 15;
  std::string table = padded("", name_width);
  for (const Column& column : columns) table += padded(column.title, width);
  table += "verdict\n";
  std::string any;
  for (const Json& method : experiment.at("methods")) {
    const std::string label = method.at("label");
    if (any.empty() && !values_of(experiment, label, columns[0].id).empty()) any = label;
    table += padded(label, name_width);
    for (const Column& column : columns) {
      table += padded(cell(values_of(experiment, label, column.id), column.factor, column.digits),
                      width);
    }
    table += verdicts(experiment, label) + "\n";
  }
  if (any.empty()) return table;
  table += padded("retrained models", name_width);
  for (const Column& column : columns) {
    table += padded(
        cell(reference_values(experiment, any, column.id), column.factor, column.digits), width);
  }
  return table + "\n";
}

std::string three_lines(const Json& experiment, const std::string& method) {
  const auto percent = [](const std::vector<Json>& values) { return cell(values, 100, 1) + " %"; };
  const auto number = [](const std::vector<Json>& values) { return cell(values, 1, 3); };
  return text("Error on the cohort: original ",
              percent(original_values(experiment, method, "cohort_error")), ", scrubbed ",
              percent(values_of(experiment, method, "cohort_error")), ", retrained ",
              percent(reference_values(experiment, method, "cohort_error")), "\n",
              "Distance to retrained models: original ",
              number(original_values(experiment, method, "distance_cohort")), ", scrubbed ",
              number(values_of(experiment, method, "distance_cohort")),
              ", retrained among themselves ",
              number(reference_values(experiment, method, "distance_cohort")), "\n", "Verdict on ",
              method, ": ", verdicts(experiment, method), "\n");
}

}  // namespace pumice
