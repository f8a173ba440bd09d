// Figures from the curves of audits.
#include <array>
#include <map>

#include "pumice/core/error.h"
#include "pumice/report/figures.h"
#include "pumice/report/mean_curve.h"

namespace pumice::report {
namespace {

struct Part {
  const char* key;
  const char* name;
  int style;
};
// The three sets of examples, styled alike in every figure.
constexpr std::array<Part, 3> sets{Part{"cohort", "cohort", 6}, Part{"retain", "retained", 5},
                                   Part{"test", "test", 1}};

const Json& curve_of(const Trial& trial, const char* name) {
  return part(part(trial.audit, "curves"), name);
}

void append_notes(Drawing& drawing, const std::vector<std::string>& notes) {
  drawing.notes.insert(drawing.notes.end(), notes.begin(), notes.end());
}

Drawing path_drawing(const Subject& subject) {
  Drawing drawing{
      .name = subject.label,
      .data = {{"x", {{"label", "position α on the way from w(D) to the scrubbed weights"}}},
               {"y", {{"label", "L1 distance to the retrained models"}, {"zero", true}}},
               {"series", Json::array()}},
      .table = {{"examples", "position", "distance", "standard deviation"}, {}}};
  for (const Part& set : sets) {
    MeanCurve curve;
    Spread floor;
    for (const Trial& trial : subject.trials) {
      const Json& path = curve_of(trial, "path");
      if (!path.contains("positions") || !path.contains(set.key)) continue;
      curve.add(path.at("positions"), path.at(set.key));
      if (part(path, "floor").contains(set.key)) floor.add(number_of(path.at("floor").at(set.key)));
    }
    if (curve.empty()) continue;
    append_notes(drawing, curve_notes(set.name, curve, false));
    drawing.data["series"].push_back(series_of(set.name, set.style, curve));
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      drawing.table.rows.push_back({set.name, curve.x[i], json_of(mean_or_infinite(curve.y[i])),
                                    curve.y[i].deviation().value_or(0)});
    }
    if (const auto level = floor.mean()) {
      drawing.data["levels"].push_back(
          {{"name", text("floor, ", set.name)}, {"style", set.style}, {"y", *level}});
      drawing.table.rows.push_back(
          {text("floor, ", set.name), Json(), *level, floor.deviation().value_or(0)});
    }
  }
  return drawing;
}

Json roc_series(const std::string& name, int style, const Json& curve, FigureTable& table) {
  MeanCurve points;
  points.add(curve.at("false_positive_rate"), curve.at("true_positive_rate"));
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    table.rows.push_back({name, points.x[i], json_of(mean_or_infinite(points.y[i]))});
  }
  return series_of(name, style, points);
}

// Counts of all runs with the same edges as the first.
struct PooledEntropies {
  Json edges;
  std::map<std::string, std::vector<double>> counts;
  std::size_t left_out = 0;

  void add(const Json& entropies) {
    if (!entropies.contains("edges")) return;
    if (edges.is_null()) edges = entropies.at("edges");
    if (edges != entropies.at("edges")) {
      ++left_out;
      return;
    }
    for (const Part& set : sets) {
      if (!entropies.contains(set.key)) continue;
      const auto more = entropies.at(set.key).get<std::vector<double>>();
      if (more.size() + 1 != edges.size()) {
        fail("entropies: ", more.size(), " counts for ", edges.size(), " edges, must be one less");
      }
      std::vector<double>& sum = counts[set.key];
      sum.resize(more.size());
      for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
    }
  }
};

Drawing entropy_drawing(const Subject& subject) {
  PooledEntropies pooled;
  for (const Trial& trial : subject.trials) pooled.add(curve_of(trial, "entropies"));
  Drawing drawing{.name = subject.label,
                  .data = Json::object(),
                  .table = {{"examples", "from", "to", "count"}, {}}};
  if (pooled.counts.empty()) return drawing;
  if (pooled.left_out) {
    drawing.notes.push_back(text(
        pooled.left_out, " runs were left out, since their columns differ from the first run's."));
  }
  drawing.data = {{"x", {{"label", "entropy of the answer, nats"}}},
                  {"edges", pooled.edges},
                  {"series", Json::array()}};
  for (const Part& set : {sets[1], sets[2], sets[0]}) {
    if (!pooled.counts.contains(set.key)) continue;
    const std::vector<double>& counts = pooled.counts[set.key];
    drawing.data["series"].push_back(
        {{"name", set.name}, {"style", set.style}, {"counts", counts}});
    for (std::size_t i = 0; i < counts.size(); ++i) {
      drawing.table.rows.push_back({set.name, pooled.edges[i], pooled.edges[i + 1], counts[i]});
    }
  }
  return drawing;
}

// The two that every audit brings along for comparison.
Drawing roc_drawing(const std::string& run, const Json& curve) {
  Drawing drawing{.name = run,
                  .data = {{"x", {{"label", "false positive rate"}, {"from", 0}, {"to", 1}}},
                           {"y", {{"label", "true positive rate"}, {"from", 0}, {"to", 1}}},
                           {"square", true},
                           {"diagonal", true},
                           {"series", Json::array()}},
                  .table = {{"model", "false positive rate", "true positive rate"}, {}}};
  for (const auto& [key, name, style] :
       {Part{"original", "original", original_style},
        Part{"reference", "retrained (reference)", retrain_style}}) {
    if (!curve.contains(key)) continue;
    drawing.data["series"].push_back(roc_series(name, style, curve.at(key), drawing.table));
  }
  return drawing;
}

}  // namespace

Figures path_figures(const std::vector<Subject>& subjects) {
  Figure figure{
      .id = "path",
      .kind = "lines",
      .title = "Distance along the scrubbing direction",
      .caption =
          "How far the answers are from those of retrained models on the way from the original "
          "(0) to the scrubbed weights (1). Dashed: the floor, the distance of retrained models "
          "to each other; a good scrub ends there for the cohort and stays there elsewhere.",
      .drawings = {}};
  for (const Subject& subject : most_telling_first(subjects)) {
    if (subject.name == "original") continue;  // has not moved
    Drawing drawing = path_drawing(subject);
    if (!drawing.data["series"].empty()) figure.drawings.push_back(drawing);
  }
  return figure.drawings.empty() ? Figures{} : Figures{figure};
}

Figures roc_figures(const std::vector<Subject>& subjects) {
  Figure figure{.id = "roc",
                .kind = "lines",
                .title = "Telling the cohort from unseen examples",
                .caption =
                    "ROC of the margin attack: share of the cohort found against share of test "
                    "examples wrongly called members. The diagonal is guessing; a good scrub "
                    "lies where the retrained model does.",
                .drawings = {}};
  std::vector<std::string> runs;
  std::map<std::string, Drawing> drawings;
  for (const Subject& subject : subjects) {
    for (const Trial& trial : subject.trials) {
      const Json& curve = curve_of(trial, "roc");
      if (!curve.contains("false_positive_rate")) continue;
      if (!drawings.contains(trial.run)) {
        runs.push_back(trial.run);
        drawings[trial.run] = roc_drawing(trial.run, curve);
      }
      // Both are there already, as every audit's own comparison.
      if (subject.name == "original" && curve.contains("original")) continue;
      if (subject.name == "retrain" && curve.contains("reference")) continue;
      Drawing& drawing = drawings[trial.run];
      drawing.data["series"].push_back(
          roc_series(subject.label, subject.style, curve, drawing.table));
    }
  }
  for (const std::string& run : runs) figure.drawings.push_back(drawings[run]);
  return figure.drawings.empty() ? Figures{} : Figures{figure};
}

Figures entropy_figures(const std::vector<Subject>& subjects) {
  Figure figure{.id = "entropies",
                .kind = "histogram",
                .title = "How sure the model is",
                .caption =
                    "Entropy of the class probabilities, share of each set; all runs together. A "
                    "forgotten cohort looks like the test examples, a remembered one like the "
                    "retained ones.",
                .drawings = {}};
  for (const Subject& subject : most_telling_first(subjects)) {
    const Drawing drawing = entropy_drawing(subject);
    if (drawing.data.contains("edges")) figure.drawings.push_back(drawing);
  }
  return figure.drawings.empty() ? Figures{} : Figures{figure};
}

Figures query_figures(const std::vector<Subject>& subjects) {
  Figure figure{
      .id = "queries",
      .kind = "lines",
      .title = "What several answers tell together",
      .caption =
          "Upper bound on the information about the cohort in the joint answers to this many "
          "queries, mean over runs; lower is better, and a line that flattens has little more "
          "to tell.",
      .drawings = {}};
  Drawing drawing{.name = {},
                  .data = {{"x", {{"label", "queries"}}},
                           {"y", {{"label", "nats"}, {"scale", "log"}}},
                           {"series", Json::array()}},
                  .table = {{"model", "queries", "nats", "standard deviation"}, {}}};
  for (const Subject& subject : subjects) {
    MeanCurve curve;
    for (const Trial& trial : subject.trials) {
      const Json& bounds = curve_of(trial, "bounds_by_queries");
      if (bounds.contains("queries")) curve.add(bounds.at("queries"), bounds.at("nats"));
    }
    if (curve.empty()) continue;
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      drawing.table.rows.push_back({subject.label, curve.x[i],
                                    json_of(mean_or_infinite(curve.y[i])),
                                    curve.y[i].deviation().value_or(0)});
    }
    append_notes(drawing, curve_notes(subject.label, curve, true));
    drawing.data["series"].push_back(series_of(subject.label, subject.style, curve));
  }
  if (drawing.data["series"].empty()) return {};
  figure.drawings = {drawing};
  return {figure};
}

}  // namespace pumice::report
