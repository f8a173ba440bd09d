// What pumice report and pumice demo share.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "pumice/report/report_view.h"

namespace pumice::cli {

struct WrittenReport {
  report::ReportView view;
  std::vector<std::string> skipped;  // files that are no records
  std::size_t records = 0, bytes = 0;
};

// Makes the page of these records (files, or folders that hold them) and writes it atomically.
WrittenReport write_report(const std::vector<std::filesystem::path>& records,
                           const std::filesystem::path& out);

}  // namespace pumice::cli
