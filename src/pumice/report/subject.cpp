#include "pumice/report/subject.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "pumice/core/error.h"

namespace pumice::report {
namespace {

const std::map<std::string, int>& known_styles() {
  static const std::map<std::string, int> styles{{"original", original_style},
                                                 {"finetune", 1},
                                                 {"ntk", 2},
                                                 {"retrain", retrain_style},
                                                 {"consistent", 5},
                                                 {"newton", 6},
                                                 {"fisher", 7}};
  return styles;
}

void give_styles(std::vector<Subject>& subjects) {
  std::set<int> taken{original_style, retrain_style};
  for (Subject& subject : subjects) {
    const auto known = known_styles().find(subject.name);
    subject.style = known == known_styles().end() ? -1 : known->second;
    taken.insert(subject.style);
  }
  constexpr std::array order{5, 6, 2, 7, 1, 4};
  std::size_t next = 0;
  for (Subject& subject : subjects) {
    if (subject.style >= 0) continue;
    for (std::size_t tried = 0; tried < order.size() && taken.contains(order[next % order.size()]);
         ++tried) {
      ++next;
    }
    subject.style = order[next++ % order.size()];
    taken.insert(subject.style);
  }
}

std::vector<Subject> subjects_of_experiment(const Json& content) {
  std::vector<Subject> subjects;
  for (const Json& method : content.at("methods")) {
    const std::string name = method.at("name");
    subjects.push_back({.name = name,
                        .label = string_of(method, "label", name),
                        .description = string_of(method, "description"),
                        .style = 0,
                        .trials = {}});
  }
  for (const Json& run : content.at("runs")) {
    for (const auto& [name, result] : part(run, "methods").items()) {
      auto subject = std::find_if(subjects.begin(), subjects.end(),
                                  [&](const Subject& each) { return each.name == name; });
      if (subject == subjects.end()) {
        subjects.push_back(
            {.name = name, .label = name, .description = {}, .style = 0, .trials = {}});
        subject = std::prev(subjects.end());
      }
      subject->trials.push_back({.run = run_name(run, content),
                                 .audit = part(result, "audit"),
                                 .summary = part(result, "summary"),
                                 .tradeoff = result.value("tradeoff", Json::array())});
    }
  }
  std::erase_if(subjects, [](const Subject& subject) { return subject.trials.empty(); });
  return subjects;
}

}  // namespace

std::vector<Subject> subjects_of(const Record& record) {
  std::vector<Subject> subjects;
  if (record.kind == "experiment") subjects = subjects_of_experiment(record.content);
  if (record.kind == "audit") {
    const std::string name = record.content.at("subject");
    subjects.push_back({.name = name,
                        .label = name,
                        .description = {},
                        .style = 0,
                        .trials = {Trial{.run = {}, .audit = record.content}}});
  }
  give_styles(subjects);
  return subjects;
}

std::vector<Subject> most_telling_first(std::vector<Subject> subjects) {
  const auto rank = [](const Subject& subject) {
    return subject.name == "consistent" ? 0
           : subject.name == "retrain"  ? 2
           : subject.name == "original" ? 3
                                        : 1;
  };
  std::stable_sort(subjects.begin(), subjects.end(),
                   [&](const Subject& a, const Subject& b) { return rank(a) < rank(b); });
  return subjects;
}

std::string run_name(const Json& run, const Json& content) {
  const bool several = part(content, "request").value("cohorts", 1) > 1;
  return text("seed ", run.at("seed").get<std::int64_t>(),
              several ? text(", cohort ", run.value("cohort", std::int64_t{1})) : "");
}

const Json& part(const Json& json, const std::string& key) {
  static const Json nothing = Json::object();
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found == json.end() || found->is_null() ? nothing : *found;
}

std::string string_of(const Json& json, const std::string& key, const std::string& otherwise) {
  const Json& value = part(json, key);
  return value.is_string() ? value.get<std::string>() : otherwise;
}

}  // namespace pumice::report
