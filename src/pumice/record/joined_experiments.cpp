#include "pumice/record/joined_experiments.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "pumice/core/error.h"

namespace pumice {
namespace {

using Json = nlohmann::json;

std::string without_seeds(const std::string& protocol) {
  std::istringstream lines(protocol);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("seeds")) rest += line + "\n";
  }
  return rest;
}

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "A" and "B" as "A; B". What is in the list already is not said again.
std::string listed_with(const Json& list, const Json& value) {
  const std::string known = as_text(list), other = as_text(value);
  return ("; " + known + "; ").find("; " + other + "; ") == std::string::npos ? known + "; " + other
                                                                              : known;
}

bool same_run(const Json& one, const Json& other) {
  return one.at("seed") == other.at("seed") && one.at("cohort") == other.at("cohort");
}

}  // namespace

std::optional<Record> joined(const Record& first, const Record& second) {
  if (first.kind != "experiment" || second.kind != "experiment") return {};
  const Json& one = first.content;
  const Json& other = second.content;
  if (!one.contains("protocol") || !other.contains("protocol")) return {};
  if (without_seeds(one.at("protocol")) != without_seeds(other.at("protocol"))) return {};
  Record both = first;
  Json& runs = both.content.at("runs");
  for (const Json& run : other.at("runs")) {
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const Json& known) { return same_run(known, run); })) {
      fail("seed ", run.at("seed").dump(), ", cohort ", run.at("cohort").dump(),
           ": stands in two records of one protocol, must be in one");
    }
    runs.push_back(run);
  }
  std::stable_sort(runs.begin(), runs.end(), [](const Json& a, const Json& b) {
    return std::pair(a.at("seed"), a.at("cohort")) < std::pair(b.at("seed"), b.at("cohort"));
  });
  Json& seeds = both.content.at("request").at("seeds");
  for (const Json& seed : other.at("request").at("seeds")) {
    if (std::find(seeds.begin(), seeds.end(), seed) == seeds.end()) seeds.push_back(seed);
  }
  std::sort(seeds.begin(), seeds.end());
  both.content["seconds"] = one.at("seconds").get<double>() + other.at("seconds").get<double>();
  for (const char* key : {"revision", "command", "machine", "threads"}) {
    if (!one.contains(key) || !other.contains(key) || one.at(key) == other.at(key)) continue;
    both.content[key] = listed_with(one.at(key), other.at(key));
  }
  return both;
}

}  // namespace pumice
