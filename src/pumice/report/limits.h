// What a report must not be taken to say.
#pragma once

#include <string>
#include <vector>

#include "pumice/report/report_source.h"

namespace pumice::report {

// Sentences for the reader, from what the records have and have not: missing noise, references or
// audit, an audit of another model, warnings of the examination, and what forgetting never reaches.
std::vector<std::string> limits_of(const std::vector<ReportSource>& sources);

}  // namespace pumice::report
