// The records that a report is made of.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "pumice/record/record.h"

namespace pumice::report {

struct ReportSource {
  // Its name, without folders: they may say more than the reader should know. Several if joined.
  std::string file;
  Record record;
};

struct ReportSources {
  std::vector<ReportSource> records;  // in the order given; those of a folder by name
  std::size_t files = 0;              // that they came from
  std::vector<std::string> skipped;   // *.json of a folder that are no records
};

// Files, and folders of which every *.json record is taken (not those of folders inside). Throws
// Error for a file that is no record or of an unknown kind, a damaged record, a folder without any.
// Experiments of one protocol with different seeds become one (joined_experiments.h).
ReportSources read_sources(const std::vector<std::filesystem::path>& paths);

// Does `work` on a record of that file. Throws Error, with the file's name, where the record is not
// as docs/records.md says.
void told_with_file(const std::string& file, const std::function<void()>& work);

}  // namespace pumice::report
