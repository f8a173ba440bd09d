// Tables and directions for repeating, straight from one record.
#pragma once

#include <vector>

#include "pumice/record/record.h"
#include "pumice/report/report_view.h"

namespace pumice::report {

// Errors before and after, what each method did, the examination. For a forget record.
std::vector<ReportTable> forget_tables(const Json& content);
// The supplement's variants, means over runs; none if the protocol did not ask for them.
std::vector<ReportTable> ablation_tables(const Json& content);
// Command, protocol, revision, digests, seeds, machine: what the record has of them.
std::vector<RepeatItem> repeat_items(const Record& record);

}  // namespace pumice::report
