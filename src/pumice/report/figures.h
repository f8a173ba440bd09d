// The figures other than the bars of readouts (readout_table.h). Each function returns nothing
// where the record has not what it takes.
#pragma once

#include <string>
#include <vector>

#include "pumice/report/report_view.h"
#include "pumice/report/subject.h"

namespace pumice::report {

using Figures = std::vector<Figure>;

// Error on retained and on test examples against remaining information, white-box and black-box,
// one point for each noise scale (paper, Fig. 3); information by query set.
Figures tradeoff_figures(const std::vector<Subject>& subjects);

// From the curves of audits, means over runs: distance along the scrubbing direction with its floor
// (paper, Fig. 4), ROC of the margin attack, entropies, bound against number of queries.
Figures path_figures(const std::vector<Subject>& subjects);
Figures roc_figures(const std::vector<Subject>& subjects);
Figures entropy_figures(const std::vector<Subject>& subjects);
Figures query_figures(const std::vector<Subject>& subjects);

// From the runs of an experiment, a drawing for each run: training paths in the plane of their
// principal components (paper, Fig. 1); loss along lines; the loss surface.
Figures projection_figures(const Json& content, const std::vector<Subject>& subjects);
Figures landscape_figures(const Json& content, const std::vector<Subject>& subjects);

// Two parallel sides δ and δ', two legs |e|, |δ'| = |δ| + 2|k||e| (docs/forgetting.md), drawn with
// the numbers of a summary that has them. `summaries`: name of the run, summary.
Figures trapezium_figures(const std::vector<std::pair<std::string, Json>>& summaries);

}  // namespace pumice::report
