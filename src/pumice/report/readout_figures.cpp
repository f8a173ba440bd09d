// Bars of readouts (paper, Fig. 2).
#include <cctype>
#include <cmath>

#include "pumice/core/error.h"
#include "pumice/report/readout_table.h"

namespace pumice::report {
namespace {

Json bar_of(const ReadoutCell& cell, const ReadoutColumn& column, const std::string& unit) {
  const auto mean = cell.value.mean();
  const auto deviation = cell.value.deviation();
  Json bar{
      {"label", column.label}, {"style", column.style}, {"text", spread_text(cell.value, unit)}};
  if (cell.value.infinite) {
    bar["value"] = "infinite";
    if (mean) bar["text"] = text("infinite, ", cell.value.infinite, "/", cell.value.count());
  } else if (mean) {
    bar["value"] = *mean;
    const bool single = cell.value.count() == 1 && cell.low && std::isfinite(*cell.high);
    if (deviation) bar["error"] = {*mean - *deviation, *mean + *deviation};
    if (single) bar["error"] = {json_of(*cell.low), json_of(*cell.high)};
  } else {
    bar["value"] = "undefined";
  }
  return bar;
}

void add_notes(const ReadoutCell& cell, const std::string& label, const std::string& unit,
               std::vector<std::string>& notes) {
  if (cell.value.infinite + cell.value.undefined > 0) {
    notes.push_back(text(label, ": ", spread_text(cell.value, unit),
                         cell.reason.empty() ? "" : ", because " + cell.reason, "."));
  }
  if (cell.value.censored) {
    notes.push_back(
        text(label,
             ": at least one run stopped before the value was reached, so this is a lower limit."));
  }
}

std::string caption_of(const ReadoutRow& row, std::size_t runs) {
  std::string caption = row.direction == "small"   ? "Small is good. "
                        : row.direction == "large" ? "Large is good. "
                                                   : "As close to the green band as possible. ";
  if (!row.band_low) return caption + "There is no green band: it takes two retrained models.";
  if (runs == 1) {
    return caption +
           "Green: the retrained models' range, widened as the verdict does. Whiskers: the "
           "interval.";
  }
  return caption +
         "Green: mean ± standard deviation of the retrained models. Whiskers: the same over runs.";
}

std::string capitalised(std::string name) {
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

Drawing drawing_of(const ReadoutRow& row, const ReadoutTable& table) {
  Drawing drawing{.name = {},
                  .data = {{"bars", Json::array()}, {"unit", row.unit}},
                  .table = {{"model", "mean", "standard deviation", "runs", "low", "high"}, {}}};
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const ReadoutCell& cell = row.cells[i];
    if (cell.value.count() == 0) continue;
    const Json bar = bar_of(cell, table.columns[i], row.unit);
    const auto deviation = cell.value.deviation();
    const bool whiskers = bar.contains("error");
    drawing.table.rows.push_back({table.columns[i].label, bar.at("value"),
                                  deviation ? Json(*deviation) : Json(), cell.value.count(),
                                  whiskers ? bar["error"][0] : Json(),
                                  whiskers ? bar["error"][1] : Json()});
    add_notes(cell, table.columns[i].label, row.unit, drawing.notes);
    drawing.data["bars"].push_back(bar);
  }
  if (row.band_low) {
    drawing.data["band"] = {{"low", json_of(*row.band_low)}, {"high", json_of(*row.band_high)}};
    drawing.table.rows.push_back({"retrained (band)", Json(), Json(), row.retrained.count(),
                                  json_of(*row.band_low), json_of(*row.band_high)});
  }
  return drawing;
}

}  // namespace

std::vector<Figure> readout_figures(const ReadoutTable& table) {
  std::vector<Figure> figures;
  for (const ReadoutRow& row : table.rows) {
    const Drawing drawing = drawing_of(row, table);
    if (drawing.data.at("bars").empty()) continue;
    figures.push_back({.id = "readout-" + row.id,
                       .kind = "bars",
                       .title = capitalised(row.name),
                       .caption = caption_of(row, table.runs),
                       .drawings = {drawing}});
  }
  return figures;
}

}  // namespace pumice::report
