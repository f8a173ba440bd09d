// What noise costs and what it hides.
#include <cmath>
#include <map>
#include <tuple>

#include "pumice/core/error.h"
#include "pumice/report/figures.h"
#include "pumice/report/mean_curve.h"

namespace pumice::report {
namespace {

// One number of the trade-off of one subject, by noise scale, over runs.
using ByNoise = std::map<double, Spread>;

ByNoise by_noise(const Subject& subject, const std::string& key) {
  ByNoise result;
  for (const Trial& trial : subject.trials) {
    for (const Json& point : trial.tradeoff) {
      if (point.contains(key)) {
        result[number_of(point.at("noise"))].add(number_of(point.at(key)));
      }
    }
  }
  return result;
}

std::string reason_at(const Subject& subject, double noise) {
  for (const Trial& trial : subject.trials) {
    for (const Json& point : trial.tradeoff) {
      if (number_of(point.at("noise")) == noise) return string_of(point, "reason");
    }
  }
  return {};
}

// Points that have no place on a log axis, by noise scale, what they are and why: one note for all
// of the same.
class OffAxis {
 public:
  void look(const std::string& name, const Subject& subject, double noise, double nats) {
    if (std::isfinite(nats) && nats > 0) return;
    const std::string what = std::isfinite(nats) ? "no information (zero)" : "infinite information";
    std::string& names = names_[{noise, what, reason_at(subject, noise)}];
    names += (names.empty() ? "" : ", ") + name;
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> out;
    for (const auto& [where, names] : names_) {
      const auto& [noise, what, reason] = where;
      out.push_back(text("Noise ", number_text(noise), " (", names, "): ", what,
                         reason.empty() ? "" : ", because " + reason, "; not on the axis."));
    }
    return out;
  }

 private:
  std::map<std::tuple<double, std::string, std::string>, std::string> names_;
};

Figures error_figure(const std::vector<Subject>& subjects, const std::string& information_key,
                     const std::string& information, const std::string& error_key,
                     const std::string& examples) {
  OffAxis off_axis;
  Drawing drawing{
      .name = {},
      .data = {{"x", {{"label", "remaining information, nats"}, {"scale", "log"}}},
               {"y", {{"label", text("error on ", examples)}, {"unit", "share"}, {"zero", true}}},
               {"points", true},
               {"series", Json::array()}},
      .table = {{"model", "noise", "information, nats", "error", "runs"}, {}}};
  for (const Subject& subject : subjects) {
    const ByNoise nats = by_noise(subject, information_key);
    ByNoise errors = by_noise(subject, error_key);
    Json x = Json::array(), y = Json::array(), labels = Json::array();
    for (const auto& [noise, spread] : nats) {
      if (!errors.contains(noise)) continue;
      const double where = mean_or_infinite(spread), error = mean_or_infinite(errors[noise]);
      drawing.table.rows.push_back(
          {subject.label, noise, json_of(where), json_of(error), spread.count()});
      off_axis.look(subject.label, subject, noise, where);
      x.push_back(json_of(where));
      y.push_back(json_of(error));
      labels.push_back("noise " + number_text(noise));
    }
    if (x.empty()) continue;
    drawing.data["series"].push_back({{"name", subject.label},
                                      {"style", subject.style},
                                      {"x", x},
                                      {"y", y},
                                      {"labels", labels}});
  }
  if (drawing.data["series"].empty()) return {};
  drawing.notes = off_axis.notes();
  return {
      {.id = text("tradeoff-", information_key, "-", error_key),
       .kind = "lines",
       .title = text("Error on ", examples, " against information in the ", information,
                     information_key == "white_box" ? " (white-box)" : " (black-box)"),
       .caption = text("Each point is one noise scale, mean over runs: more noise moves it to the "
                       "left (less to learn about the cohort from the ",
                       information, ") and up (more errors). Lower left is better."),
       .drawings = {drawing}}};
}

Drawing query_set_drawing(const Subject& subject) {
  struct Set {
    const char* key;
    const char* name;
    int style;
  };
  OffAxis off_axis;
  Drawing drawing{.name = subject.label,
                  .data = {{"x", {{"label", "noise scale α"}, {"scale", "log"}}},
                           {"y", {{"label", "nats, mean over queries"}, {"scale", "log"}}},
                           {"points", true},
                           {"series", Json::array()}},
                  .table = {{"queries", "noise", "information, nats", "standard deviation"}, {}}};
  for (const Set& set :
       {Set{"black_box_cohort", "cohort", 6}, Set{"black_box_retain", "retained", 5},
        Set{"black_box_test", "test", 1}}) {
    Json x = Json::array(), y = Json::array();
    for (const auto& [noise, spread] : by_noise(subject, set.key)) {
      const double nats = mean_or_infinite(spread);
      drawing.table.rows.push_back(
          {set.name, noise, json_of(nats), spread.deviation().value_or(0)});
      x.push_back(noise);
      y.push_back(json_of(nats));
      off_axis.look(set.name, subject, noise, nats);
    }
    if (x.empty()) continue;
    drawing.data["series"].push_back(
        {{"name", set.name}, {"style", set.style}, {"x", x}, {"y", y}});
  }
  drawing.notes = off_axis.notes();
  return drawing;
}

}  // namespace

Figures tradeoff_figures(const std::vector<Subject>& subjects) {
  Figures figures;
  struct Pair {
    const char* key;
    const char* name;
  };
  for (const Pair& information :
       {Pair{"white_box", "weights"}, Pair{"black_box_cohort", "answers"}}) {
    for (const Pair& error :
         {Pair{"retain_error", "retained examples"}, Pair{"test_error", "test examples"}}) {
      for (const Figure& figure :
           error_figure(subjects, information.key, information.name, error.key, error.name)) {
        figures.push_back(figure);
      }
    }
  }
  Figure sets{.id = "query-sets",
              .kind = "lines",
              .title = "Information by what is asked",
              .caption =
                  "Upper bound on what one answer tells about the cohort, by the examples that are "
                  "asked about: cohort, retained or test. Answers about the cohort should tell "
                  "little more than others.",
              .drawings = {}};
  for (const Subject& subject : most_telling_first(subjects)) {
    Drawing drawing = query_set_drawing(subject);
    if (!drawing.data["series"].empty()) sets.drawings.push_back(drawing);
  }
  if (!sets.drawings.empty()) figures.push_back(sets);
  return figures;
}

}  // namespace pumice::report
