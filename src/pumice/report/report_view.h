// What a report shows, as plain data: everything is decided here, pages only set it in type.
#pragma once

#include <string>
#include <vector>

#include "pumice/report/number_text.h"
#include "pumice/report/report_source.h"

namespace pumice::report {

// How often a verdict was given.
struct VerdictCount {
  std::string verdict;
  int count = 0;
};

struct ReportCell {
  std::string text;
  std::string detail = {};                  // second line, smaller
  std::vector<VerdictCount> verdicts = {};  // set as signs
  bool number = false;                      // aligned to the right
};

struct ReportColumn {
  std::string title;
  std::string definition = {};  // shown on demand
};

struct ReportRow {
  std::string group = {};       // a heading above the first row of each
  std::string definition = {};  // of the first cell, shown on demand
  std::vector<ReportCell> cells;
};

struct ReportTable {
  std::string id, title, caption;
  std::vector<ReportColumn> columns;
  std::vector<ReportRow> rows;
  bool folded = false;  // opened by the reader
};

// A figure's own numbers, to show and to download.
struct FigureTable {
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;
};

// `data` depends on the kind (docs/report.md). A figure has several drawings (one for each run,
// say) of which the reader chooses.
struct Drawing {
  std::string name;
  Json data;
  FigureTable table;
  std::vector<std::string> notes = {};  // what could not be drawn, and why
};

struct Figure {
  std::string id, kind, title, caption;  // kind: bars, lines, plane, histogram
  std::vector<Drawing> drawings;
};

struct SubjectVerdict {
  std::string subject, verdict, meaning, sentence;
  std::vector<VerdictCount> counts;  // over runs
};

// For a reader who decides, not computes.
struct ReportSummary {
  std::string headline;  // of an experiment: which methods got there
  std::vector<std::string> asked, done, found, not_proved;
  std::vector<SubjectVerdict> verdicts;
};

struct RepeatItem {
  std::string name, value;
  bool block = false;  // set as it is, line by line
};

// One record's part.
struct ReportPart {
  std::string id, kind, title, file;
  std::vector<ReportTable> tables;
  std::vector<Figure> figures;
  std::vector<RepeatItem> repeat;
};

struct Definition {
  std::string name, unit, text, direction;
};

struct ReportView {
  std::string title;
  ReportSummary summary;
  std::vector<ReportPart> parts;
  std::vector<Definition> definitions;
};

// Throws Error with the file's name for a record that is not as docs/records.md says.
ReportView report_view(const std::vector<ReportSource>& sources);

Json to_json(const Figure& figure);
Json to_json(const ReportView& view);

}  // namespace pumice::report
