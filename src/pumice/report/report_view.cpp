#include "pumice/report/report_view.h"

#include <algorithm>
#include <utility>

#include "pumice/core/error.h"
#include "pumice/report/figures.h"
#include "pumice/report/readout_table.h"
#include "pumice/report/record_tables.h"
#include "pumice/report/report_summary.h"
#include "pumice/report/subject.h"

namespace pumice::report {
namespace {

template <typename Each>
void append(std::vector<Each>& all, const std::vector<Each>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::string part_title(const Record& record) {
  if (record.kind == "experiment") return string_of(record.content, "title", "Experiment");
  if (record.kind == "audit") return "Audit of " + string_of(record.content, "subject", "a model");
  return text("Forgetting ", record.content.at("cohort_size").get<std::int64_t>(), " examples");
}

std::vector<std::pair<std::string, Json>> summaries_of(const Record& record,
                                                       const std::vector<Subject>& subjects) {
  std::vector<std::pair<std::string, Json>> summaries;
  if (record.kind == "forget") {
    for (const Json& method : record.content.at("methods")) {
      summaries.emplace_back(string_of(method, "method"), method);
    }
  }
  for (const Subject& subject : subjects) {
    for (const Trial& trial : subject.trials) {
      summaries.emplace_back(text(subject.label, ", ", trial.run), trial.summary);
    }
  }
  return summaries;
}

ReportPart make_part(const ReportSource& source) {
  const Record& record = source.record;
  ReportPart result{.id = {},
                    .kind = record.kind,
                    .title = part_title(record),
                    .file = source.file,
                    .tables = {},
                    .figures = {},
                    .repeat = repeat_items(record)};
  const std::vector<Subject> subjects = subjects_of(record);
  if (record.kind == "forget") append(result.tables, forget_tables(record.content));
  const ReadoutTable readouts = readout_table(subjects);
  if (!readouts.rows.empty()) {
    result.tables.push_back(summary_table(readouts));
    result.tables.push_back(run_table(subjects));
    append(result.figures, readout_figures(readouts));
  }
  append(result.figures, tradeoff_figures(subjects));
  append(result.figures, path_figures(subjects));
  if (record.kind == "experiment") {
    append(result.tables, ablation_tables(record.content));
    append(result.figures, projection_figures(record.content, subjects));
    append(result.figures, landscape_figures(record.content, subjects));
  }
  append(result.figures, roc_figures(subjects));
  append(result.figures, entropy_figures(subjects));
  append(result.figures, query_figures(subjects));
  append(result.figures, trapezium_figures(summaries_of(record, subjects)));
  return result;
}

void add_definitions(const Record& record, std::vector<Definition>& definitions) {
  for (const ReadoutRow& row : readout_table(subjects_of(record)).rows) {
    const auto known = std::find_if(definitions.begin(), definitions.end(),
                                    [&](const Definition& each) { return each.name == row.name; });
    if (known == definitions.end()) {
      definitions.push_back({row.name, row.unit, row.definition, row.direction});
    }
  }
}

// Ids stay unique where several records have the same tables and figures.
void number_ids(ReportView& view) {
  for (std::size_t i = 0; i < view.parts.size(); ++i) {
    ReportPart& part = view.parts[i];
    part.id = text("part-", i + 1);
    for (ReportTable& table : part.tables) table.id = part.id + "-" + table.id;
    for (Figure& figure : part.figures) figure.id = part.id + "-" + figure.id;
  }
}

Json to_json(const ReportTable& table) {
  Json rows = Json::array(), columns = Json::array();
  for (const ReportColumn& column : table.columns)
    columns.push_back({column.title, column.definition});
  for (const ReportRow& row : table.rows) {
    Json cells = Json::array();
    for (const ReportCell& cell : row.cells) {
      Json json{{"text", cell.text}};
      if (!cell.detail.empty()) json["detail"] = cell.detail;
      for (const VerdictCount& each : cell.verdicts) json["verdicts"][each.verdict] = each.count;
      cells.push_back(json);
    }
    rows.push_back({{"group", row.group}, {"definition", row.definition}, {"cells", cells}});
  }
  return {{"id", table.id},     {"title", table.title}, {"caption", table.caption},
          {"columns", columns}, {"rows", rows},         {"folded", table.folded}};
}

}  // namespace

ReportView report_view(const std::vector<ReportSource>& sources) {
  ReportView view;
  for (const ReportSource& source : sources) {
    told_with_file(source.file, [&] {
      view.parts.push_back(make_part(source));
      add_definitions(source.record, view.definitions);
      report_summary({source});  // so that a fault is told with the name of its file
    });
  }
  view.title = view.parts.empty() ? "Pumice report" : view.parts.front().title;
  view.summary = report_summary(sources);
  number_ids(view);
  return view;
}

Json to_json(const Figure& figure) {
  Json drawings = Json::array();
  for (const Drawing& drawing : figure.drawings) {
    drawings.push_back(
        {{"name", drawing.name},
         {"data", drawing.data},
         {"table", {{"columns", drawing.table.columns}, {"rows", drawing.table.rows}}},
         {"notes", drawing.notes}});
  }
  return {{"id", figure.id},
          {"kind", figure.kind},
          {"title", figure.title},
          {"caption", figure.caption},
          {"drawings", drawings}};
}

Json to_json(const ReportView& view) {
  Json parts = Json::array(), verdicts = Json::array(), definitions = Json::array();
  for (const ReportPart& each : view.parts) {
    Json tables = Json::array(), figures = Json::array(), repeat = Json::array();
    for (const ReportTable& table : each.tables) tables.push_back(to_json(table));
    for (const Figure& figure : each.figures) figures.push_back(to_json(figure));
    for (const RepeatItem& item : each.repeat) repeat.push_back({item.name, item.value});
    parts.push_back({{"id", each.id},
                     {"kind", each.kind},
                     {"title", each.title},
                     {"file", each.file},
                     {"tables", tables},
                     {"figures", figures},
                     {"repeat", repeat}});
  }
  for (const SubjectVerdict& each : view.summary.verdicts) {
    Json counts = Json::object();
    for (const VerdictCount& count : each.counts) counts[count.verdict] = count.count;
    verdicts.push_back({{"subject", each.subject},
                        {"verdict", each.verdict},
                        {"meaning", each.meaning},
                        {"sentence", each.sentence},
                        {"counts", counts}});
  }
  for (const Definition& each : view.definitions) {
    definitions.push_back({each.name, each.unit, each.text, each.direction});
  }
  return {{"title", view.title},
          {"summary",
           {{"headline", view.summary.headline},
            {"asked", view.summary.asked},
            {"done", view.summary.done},
            {"found", view.summary.found},
            {"verdicts", verdicts},
            {"not_proved", view.summary.not_proved}}},
          {"parts", parts},
          {"definitions", definitions}};
}

}  // namespace pumice::report
