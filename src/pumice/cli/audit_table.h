// An audit as a table for the terminal.
#pragma once

#include <string>

#include "pumice/evaluation/audit.h"

namespace pumice::cli {

// A line a readout: value, interval, original, retrained models, verdict; then the overall line.
// `explain` adds what each number means.
std::string audit_table(const AuditReport& report, bool explain);

}  // namespace pumice::cli
