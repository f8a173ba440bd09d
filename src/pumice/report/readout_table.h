// Every readout of every judged model, over runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pumice/report/report_view.h"
#include "pumice/report/subject.h"

namespace pumice::report {

// One readout of one column.
struct ReadoutCell {
  Spread value;
  std::optional<double> low, high;  // interval of a single run
  std::string interval_method;
  std::string reason;  // why a value is not finite
  std::vector<VerdictCount> verdicts;
  std::string because;  // of a single run
};

struct ReadoutRow {
  std::string id, group, name, unit, definition, direction;
  std::vector<ReadoutCell> cells;  // one for each column, perhaps without any value
  Spread retrained;                // every reference of every run
  // Several runs: mean ∓ standard deviation of the retrained models, as in the paper's figures. One
  // run: the band that its verdict used. None without two retrained models.
  std::optional<double> band_low, band_high;
};

struct ReadoutColumn {
  std::string label, description;
  int style = 0;
};

struct ReadoutTable {
  std::vector<ReadoutColumn> columns;  // "original" comes first even if it was not judged itself
  std::vector<ReadoutRow> rows;        // in the order of the audits
  std::size_t runs = 0;
};
ReadoutTable readout_table(const std::vector<Subject>& subjects);

ReportTable summary_table(const ReadoutTable& table);
// Every value of every run with its interval and the reason of its verdict.
ReportTable run_table(const std::vector<Subject>& subjects);
// One figure of horizontal bars for each readout.
std::vector<Figure> readout_figures(const ReadoutTable& table);

}  // namespace pumice::report
