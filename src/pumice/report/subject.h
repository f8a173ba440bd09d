// Audits and experiments seen alike: who was judged, in which runs.
#pragma once

#include <string>
#include <vector>

#include "pumice/record/record.h"
#include "pumice/report/number_text.h"

namespace pumice::report {

// One model of one run. Parts that the record does not have are empty objects.
struct Trial {
  std::string run;  // "seed 1", "seed 1, cohort 2"; empty for an audit
  Json audit = Json::object(), summary = Json::object(), tradeoff = Json::array();
};

// A method of an experiment, or the model of an audit.
struct Subject {
  std::string name, label, description;
  int style = 0;  // colour, marker and dash of every figure: 0 original … 3 retrain … 7
  std::vector<Trial> trials;
};

// In the experiment's own order of methods; empty for a forget record.
std::vector<Subject> subjects_of(const Record& record);

// For figures of which one drawing is shown first: our own method, then the others, then what they
// are compared with.
std::vector<Subject> most_telling_first(std::vector<Subject> subjects);

// The styles of the methods that everyone knows; others get those that are left, in turn.
constexpr int original_style = 0, retrain_style = 3;

// The name of a run of an experiment; its cohort is named only if there are several.
std::string run_name(const Json& run, const Json& content);

// A part of JSON, or an empty object: record parts are there only if they were asked for.
const Json& part(const Json& json, const std::string& key);
std::string string_of(const Json& json, const std::string& key, const std::string& otherwise = {});

}  // namespace pumice::report
