// The stored records of tests/golden/, and changed copies of them.
#pragma once

#include <string>

#include "pumice/report/report_source.h"

namespace pumice::testing {

inline std::string golden_path(const std::string& name) {
  return PUMICE_SOURCE_DIR "/tests/golden/" + name;
}

inline report::ReportSource stored(const std::string& kind) {
  return report::read_sources({golden_path(kind + ".json")}).records.at(0);
}

}  // namespace pumice::testing
