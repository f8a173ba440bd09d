#include "pumice/report/readout_table.h"

#include <algorithm>
#include <set>

#include "pumice/core/error.h"

namespace pumice::report {
namespace {

bool is_censored(const Json& readout) {
  return string_of(part(readout, "interval"), "method").starts_with("censored");
}

void count(std::vector<VerdictCount>& counts, const std::string& verdict) {
  if (verdict.empty()) return;
  const auto found = std::find_if(counts.begin(), counts.end(), [&](const VerdictCount& each) {
    return each.verdict == verdict;
  });
  if (found != counts.end()) {
    ++found->count;
  } else {
    counts.push_back({verdict, 1});
  }
}

ReadoutRow& row_of(ReadoutTable& table, const Json& readout) {
  const std::string id = readout.at("id");
  for (ReadoutRow& row : table.rows) {
    if (row.id == id) return row;
  }
  table.rows.push_back({.id = id,
                        .group = string_of(readout, "group"),
                        .name = string_of(readout, "name", id),
                        .unit = string_of(readout, "unit"),
                        .definition = string_of(readout, "definition"),
                        .direction = string_of(readout, "direction"),
                        .cells = std::vector<ReadoutCell>(table.columns.size()),
                        .retrained = {},
                        .band_low = {},
                        .band_high = {}});
  return table.rows.back();
}

void add_value(ReadoutCell& cell, const Json& readout) {
  cell.value.add(number_of(readout.at("value")));
  if (is_censored(readout)) cell.value.censored = true;
  const Json& interval = part(readout, "interval");
  if (!interval.empty()) {
    cell.low = number_of(interval.at("low"));
    cell.high = number_of(interval.at("high"));
    cell.interval_method = string_of(interval, "method");
  }
  if (readout.contains("reason")) cell.reason = string_of(readout, "reason");
  count(cell.verdicts, string_of(readout, "verdict"));
  cell.because = string_of(readout, "because");
}

bool judged_itself(const std::vector<Subject>& subjects, const std::string& name) {
  return std::any_of(subjects.begin(), subjects.end(),
                     [&](const Subject& subject) { return subject.name == name; });
}

bool has_original(const std::vector<Subject>& subjects) {
  for (const Subject& subject : subjects) {
    for (const Trial& trial : subject.trials) {
      for (const Json& readout : trial.audit.value("readouts", Json::array())) {
        if (readout.contains("original")) return true;
      }
    }
  }
  return false;
}

void set_band(ReadoutRow& row, const Json& single_band, std::size_t runs) {
  if (runs == 1 && !single_band.empty()) {
    row.band_low = number_of(single_band.at("low"));
    row.band_high = number_of(single_band.at("high"));
  } else if (const auto deviation = row.retrained.deviation()) {
    row.band_low = *row.retrained.mean() - *deviation;
    row.band_high = *row.retrained.mean() + *deviation;
  }
}

std::vector<VerdictCount> in_fixed_order(const std::vector<VerdictCount>& counts) {
  std::vector<VerdictCount> ordered = counts;
  std::sort(ordered.begin(), ordered.end(), [](const VerdictCount& a, const VerdictCount& b) {
    return a.count != b.count ? a.count > b.count : a.verdict < b.verdict;
  });
  return ordered;
}

}  // namespace

ReadoutTable readout_table(const std::vector<Subject>& subjects) {
  ReadoutTable table;
  const bool borrowed = !judged_itself(subjects, "original") && has_original(subjects);
  if (borrowed) {
    table.columns.push_back({"original", "the model before anything was done", original_style});
  }
  for (const Subject& subject : subjects) {
    table.columns.push_back({subject.label, subject.description, subject.style});
    table.runs = std::max(table.runs, subject.trials.size());
  }
  // The original's and the retrained models' values are the same for every subject of a run.
  std::set<std::string> seen;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    for (const Trial& trial : subjects[i].trials) {
      for (const Json& readout : trial.audit.value("readouts", Json::array())) {
        ReadoutRow& row = row_of(table, readout);
        add_value(row.cells[i + (borrowed ? 1 : 0)], readout);
        if (!seen.insert(trial.run + "\n" + row.id).second) continue;
        if (borrowed && readout.contains("original")) {
          row.cells[0].value.add(number_of(readout.at("original")));
        }
        for (const Json& value : readout.value("references", Json::array())) {
          row.retrained.add(number_of(value));
        }
        set_band(row, part(readout, "band"), table.runs);
      }
    }
  }
  for (ReadoutRow& row : table.rows) {
    if (table.runs > 1) set_band(row, Json::object(), table.runs);
  }
  return table;
}

ReportTable summary_table(const ReadoutTable& table) {
  const std::string runs = table.runs == 1
                               ? "of one run; small print: its interval"
                               : text("mean ± standard deviation of ", table.runs, " runs");
  ReportTable result{
      .id = "readouts",
      .title = "Every readout",
      .caption =
          text("Values are ", runs,
               ". Signs: how the value compares with models retrained without the cohort, and in "
               "how many runs; ● like retrained, ▲ leaks, ▼ over-forgotten, ○ cannot tell."),
      .columns = {{"readout"}},
      .rows = {}};
  for (const ReadoutColumn& column : table.columns) {
    result.columns.push_back({column.label, column.description});
  }
  result.columns.push_back(
      {"retrained", "models trained without the cohort: what forgetting should look like"});
  for (const ReadoutRow& row : table.rows) {
    ReportRow line{.group = row.group,
                   .definition = row.definition,
                   .cells = {{.text = row.name, .detail = row.unit == "share" ? "" : row.unit}}};
    for (const ReadoutCell& cell : row.cells) {
      std::string detail = cell.value.infinite + cell.value.undefined ? cell.reason : "";
      if (detail.empty() && cell.value.count() == 1 && cell.low) {
        detail = text(number_text(*cell.low, row.unit), " … ", number_text(*cell.high, row.unit));
      }
      line.cells.push_back({.text = spread_text(cell.value, row.unit),
                            .detail = detail,
                            .verdicts = in_fixed_order(cell.verdicts),
                            .number = true});
    }
    line.cells.push_back(
        {.text = spread_text(row.retrained, row.unit),
         .detail = row.retrained.count() ? text(row.retrained.count(), " models") : "",
         .number = true});
    result.rows.push_back(line);
  }
  return result;
}

ReportTable run_table(const std::vector<Subject>& subjects) {
  ReportTable result{
      .id = "runs",
      .title = "Every value of every run",
      .caption = "With its interval, the retrained models' values, and why the verdict.",
      .columns = {{"readout"},
                  {"model"},
                  {"run"},
                  {"value"},
                  {"interval"},
                  {"original"},
                  {"retrained"},
                  {"verdict"},
                  {"because"}},
      .rows = {},
      .folded = true};
  for (const Subject& subject : subjects) {
    for (const Trial& trial : subject.trials) {
      for (const Json& readout : trial.audit.value("readouts", Json::array())) {
        const std::string unit = string_of(readout, "unit");
        const auto value = [&](const Json& json) { return number_text(number_of(json), unit); };
        const Json& interval = part(readout, "interval");
        std::string references;
        for (const Json& reference : readout.value("references", Json::array())) {
          references += (references.empty() ? "" : ", ") + value(reference);
        }
        result.rows.push_back(
            {.group = {},
             .definition = string_of(readout, "definition"),
             .cells = {{.text = string_of(readout, "name")},
                       {.text = subject.label},
                       {.text = trial.run},
                       {.text = (is_censored(readout) ? "> " : "") + value(readout.at("value")),
                        .detail = string_of(readout, "reason"),
                        .number = true},
                       {.text = interval.empty() ? ""
                                                 : text(value(interval.at("low")), " … ",
                                                        value(interval.at("high"))),
                        .detail = string_of(interval, "method")},
                       {.text = readout.contains("original") ? value(readout.at("original")) : "",
                        .number = true},
                       {.text = references},
                       {.text = string_of(readout, "verdict")},
                       {.text = string_of(readout, "because")}}});
      }
    }
  }
  return result;
}

}  // namespace pumice::report
