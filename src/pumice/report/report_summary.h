// The first page: what was asked, done and found, and what is not proved, in plain words.
#pragma once

#include <string>
#include <vector>

#include "pumice/report/report_source.h"
#include "pumice/report/report_view.h"

namespace pumice::report {

// One sentence for someone who has never seen the word. Unknown words get an empty one.
std::string verdict_meaning(const std::string& verdict);

// All records together; a sentence that several would say is said once.
ReportSummary report_summary(const std::vector<ReportSource>& sources);

}  // namespace pumice::report
