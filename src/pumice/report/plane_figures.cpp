// Pictures of weight space: training paths, loss surface, loss along lines, the trapezium.
#include <algorithm>
#include <cmath>
#include <map>

#include "pumice/core/error.h"
#include "pumice/report/figures.h"
#include "pumice/report/mean_curve.h"

namespace pumice::report {
namespace {

constexpr int start_style = 4;

int style_of(const std::string& name, const std::vector<Subject>& subjects) {
  if (name == "w0") return start_style;
  if (name == "w(D)" || name == "D") return original_style;
  if (name == "w(Dr)" || name == "Dr") return retrain_style;
  for (const Subject& subject : subjects) {
    if (subject.name == name) return subject.style;
  }
  return start_style;
}

// Well-known places first, methods after them in the experiment's order, the rest by name.
std::vector<std::string> in_order(const Json& object, const std::vector<Subject>& subjects) {
  std::vector<std::string> names{"w0", "w(D)", "w(Dr)", "D", "Dr"};
  for (const Subject& subject : subjects) names.push_back(subject.name);
  for (const auto& [name, value] : object.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::erase_if(names, [&](const std::string& name) { return !object.contains(name); });
  return names;
}

Json points_json(const Json& points, const std::vector<Subject>& subjects, FigureTable& table) {
  Json result = Json::array();
  for (const std::string& name : in_order(points, subjects)) {
    const Json& point = points.at(name);
    result.push_back({{"name", name},
                      {"style", style_of(name, subjects)},
                      {"x", number_of(point.at(0))},
                      {"y", number_of(point.at(1))}});
    table.rows.push_back({"point", name, Json(), point.at(0), point.at(1)});
  }
  return result;
}

Drawing projection_drawing(const Json& projection, const std::vector<Subject>& subjects) {
  Drawing drawing{.name = {}, .data = {}, .table = {{"what", "name", "step", "x", "y"}, {}}};
  Json paths = Json::array(), clouds = Json::array();
  const Json& given = part(projection, "paths");
  for (const std::string& name : in_order(given, subjects)) {
    Json points = Json::array();
    for (const Json& point : given.at(name)) {
      drawing.table.rows.push_back({"path", name, points.size(), point.at(0), point.at(1)});
      points.push_back({number_of(point.at(0)), number_of(point.at(1))});
    }
    paths.push_back({{"name", text("training on ", name)},
                     {"style", style_of(name, subjects)},
                     {"points", points}});
  }
  const Json points = points_json(part(projection, "points"), subjects, drawing.table);
  const Json& noise = part(projection, "clouds");
  for (const std::string& name : in_order(noise, subjects)) {
    const auto at = std::find_if(points.begin(), points.end(),
                                 [&](const Json& point) { return point.at("name") == name; });
    if (at == points.end()) {
      drawing.notes.push_back(text(name, ": has a noise cloud but no point to draw it at."));
      continue;
    }
    const double x = number_of(noise.at(name).at("x")), y = number_of(noise.at(name).at("y"));
    const double xy = number_of(noise.at(name).value("xy", Json(0.0)));
    clouds.push_back({{"name", name},
                      {"style", style_of(name, subjects)},
                      {"x", at->at("x")},
                      {"y", at->at("y")},
                      {"covariance", {x * x, xy, y * y}}});
    drawing.table.rows.push_back({"noise, standard deviations", name, Json(), x, y});
  }
  const Json& explained = part(projection, "explained");
  const auto axis = [&](const char* name, std::size_t i) {
    return Json{
        {"label", explained.size() > i
                      ? text(name, " component, ", number_text(number_of(explained.at(i)), "share"),
                             " of the spread")
                      : text(name, " component")}};
  };
  drawing.data = {{"x", axis("first", 0)}, {"y", axis("second", 1)}, {"equal", true},
                  {"paths", paths},        {"points", points},       {"clouds", clouds}};
  return drawing;
}

Drawing surface_drawing(const Json& surface, const std::vector<Subject>& subjects) {
  Drawing drawing{.name = {}, .data = {}, .table = {{"what", "name", "loss", "x", "y"}, {}}};
  const Json points = points_json(part(surface, "points"), subjects, drawing.table);
  const Json &x = surface.at("x"), &y = surface.at("y"), &loss = surface.at("loss");
  if (loss.size() != y.size()) {
    fail("landscape: ", loss.size(), " rows of losses, must be ", y.size());
  }
  double highest = 0;
  std::size_t infinite = 0;
  for (std::size_t row = 0; row < y.size(); ++row) {
    if (loss[row].size() != x.size()) {
      fail("landscape: ", loss[row].size(), " losses in row ", row, ", must be ", x.size());
    }
    for (std::size_t column = 0; column < x.size(); ++column) {
      const double value = number_of(loss[row][column]);
      infinite += !std::isfinite(value);
      if (std::isfinite(value)) highest = std::max(highest, value);
      drawing.table.rows.push_back({"loss", Json(), loss[row][column], x[column], y[row]});
    }
  }
  Json drawn = loss;
  for (Json& row : drawn) {
    for (Json& value : row) {
      if (!std::isfinite(number_of(value))) value = highest;
    }
  }
  if (infinite) {
    drawing.notes.push_back(
        text("The loss is infinite or undefined at ", infinite, " places, drawn as the highest."));
  }
  drawing.data = {{"x", {{"label", string_of(surface, "x_label")}}},
                  {"y", {{"label", string_of(surface, "y_label")}}},
                  {"surface", {{"x", x}, {"y", y}, {"z", drawn}, {"label", "loss"}}},
                  {"points", points}};
  return drawing;
}

Drawing line_drawing(const Json& line) {
  Drawing drawing{.name = {},
                  .data = {{"x", {{"label", "position on the line (0 and 1: its ends)"}}},
                           {"y", {{"label", "mean loss"}, {"zero", true}}},
                           {"marks", {0, 1}},
                           {"series", Json::array()}},
                  .table = {{"examples", "position", "loss"}, {}}};
  for (const auto& [key, name, style] :
       {std::tuple{"cohort", "cohort", 6}, {"retain", "retained", 5}, {"test", "test", 1}}) {
    if (!line.contains(key)) continue;
    MeanCurve curve;
    curve.add(line.at("positions"), line.at(key));
    drawing.data["series"].push_back(series_of(name, style, curve));
    for (const std::string& note : curve_notes(name, curve, false)) drawing.notes.push_back(note);
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      drawing.table.rows.push_back({name, curve.x[i], json_of(mean_or_infinite(curve.y[i]))});
    }
  }
  return drawing;
}

Drawing trapezium_drawing(const std::string& run, const Json& summary) {
  const Json& trapezium = summary.at("trapezium");
  const double direction = number_of(summary.at("direction_norm"));
  const double cosine = number_of(trapezium.at("cosine"));
  const double error = number_of(trapezium.at("error_norm"));
  const double scaled = direction * number_of(trapezium.at("scale"));
  const double height = error * std::sqrt(std::max(0.0, 1 - cosine * cosine));
  const Json a{-scaled / 2, 0}, b{scaled / 2, 0}, c{direction / 2, height},
      d{-direction / 2, height};
  const auto side = [](const std::string& name, int style, const Json& from, const Json& to) {
    return Json{{"name", name}, {"style", style}, {"points", {from, to}}};
  };
  const auto corner = [](const std::string& name, int style, const Json& at) {
    return Json{{"name", name}, {"style", style}, {"x", at[0]}, {"y", at[1]}};
  };
  Drawing drawing{.name = run, .data = {}, .table = {{"what", "value"}, {}}};
  drawing.data = {{"x", {{"label", "along the scrubbing direction"}}},
                  {"y", {{"label", "across it"}}},
                  {"equal", true},
                  {"paths",
                   {side("|δ| = " + number_text(direction), 2, d, c),
                    side("|δ'| = " + number_text(scaled), 5, a, b),
                    side("|e| = " + number_text(error), 1, d, a), side("", 1, c, b)}},
                  {"points",
                   {corner("linear model on D", start_style, d), corner("linear model on Dr", 2, c),
                    corner("w(D)", original_style, a), corner("scrubbed", 5, b)}}};
  drawing.table.rows = {{"|δ|, direction of the linear model", direction},
                        {"|e|, error of the linear model", error},
                        {"k, cosine of the angle between them", cosine},
                        {"angle, radians", trapezium.value("angle", Json(std::acos(cosine)))},
                        {"scale", trapezium.at("scale")},
                        {"|δ'|, shift that was made", scaled}};
  return drawing;
}

}  // namespace

Figures projection_figures(const Json& content, const std::vector<Subject>& subjects) {
  Figure figure{.id = "projection",
                .kind = "plane",
                .title = "Training paths and scrubbed weights",
                .caption =
                    "Weight space seen along the two directions in which training moved most. Good "
                    "scrubs lie near w(Dr); ellipses hold the noise (two standard deviations).",
                .drawings = {}};
  for (const Json& run : content.at("runs")) {
    if (part(run, "projection").empty()) continue;
    Drawing drawing = projection_drawing(run.at("projection"), subjects);
    drawing.name = run_name(run, content);
    Drawing near = drawing;
    near.name += ", near the end";
    near.data["near"] = {"w(D)", "w(Dr)"};
    figure.drawings.push_back(drawing);
    figure.drawings.push_back(near);
  }
  return figure.drawings.empty() ? Figures{} : Figures{figure};
}

Figures landscape_figures(const Json& content, const std::vector<Subject>& subjects) {
  Figures lines;
  Figure surface{.id = "surface",
                 .kind = "plane",
                 .title = "The loss around the trained weights",
                 .caption =
                     "Loss in the plane through w0, w(D) and w(Dr): stronger blue is higher, each "
                     "line a level; "
                     "good scrubs move along the valley, not up its walls.",
                 .drawings = {}};
  for (const Json& run : content.at("runs")) {
    const Json& landscape = part(run, "landscape");
    const Json all = landscape.value("lines", Json::array());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string name = string_of(all[i], "name", text("line ", i + 1));
      if (lines.size() <= i) {
        lines.push_back(
            {.id = text("line-", i + 1),
             .kind = "lines",
             .title = "Loss from " + name,
             .caption = "Loss along the straight line in weight space; flat between the ends means "
                        "that both lie in one valley.",
             .drawings = {}});
      }
      Drawing drawing = line_drawing(all[i]);
      drawing.name = run_name(run, content);
      lines[i].drawings.push_back(drawing);
    }
    if (!part(landscape, "surface").empty()) {
      Drawing drawing = surface_drawing(landscape.at("surface"), subjects);
      drawing.name = run_name(run, content);
      surface.drawings.push_back(drawing);
    }
  }
  if (!surface.drawings.empty()) lines.push_back(surface);
  return lines;
}

Figures trapezium_figures(const std::vector<std::pair<std::string, Json>>& summaries) {
  Figure figure{
      .id = "trapezium",
      .kind = "plane",
      .title = "The trapezium of the paper's scrub",
      .caption =
          "The linear model's shift δ (short side) is right in direction but too short; with its "
          "error e as the legs, the long side δ' is the shift that is made. Drawn to "
          "scale.",
      .drawings = {}};
  for (const auto& [run, summary] : summaries) {
    if (part(summary, "trapezium").empty() || !summary.contains("direction_norm")) continue;
    figure.drawings.push_back(trapezium_drawing(run, summary));
  }
  return figure.drawings.empty() ? Figures{} : Figures{figure};
}

}  // namespace pumice::report
