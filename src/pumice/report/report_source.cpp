#include "pumice/report/report_source.h"

#include <algorithm>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/record/joined_experiments.h"

namespace pumice::report {
namespace {

namespace files = std::filesystem;

ReportSource read_source(const files::path& path) {
  ReportSource source{.file = path.filename().string(), .record = read_record(path)};
  const std::string& kind = source.record.kind;
  if (kind != "forget" && kind != "audit" && kind != "experiment") {
    fail(path.string(), ": a record of kind '", kind, "', must be forget, audit or experiment");
  }
  return source;
}

// A record that was cut off still begins like one: it must be told, not skipped.
bool means_to_be_a_record(const files::path& path) {
  return read_file(path).find("\"pumice_record\"") != std::string::npos;
}

// Takes the place of the experiment that it continues, or a place of its own.
void add_source(ReportSource source, ReportSources& sources) {
  ++sources.files;
  for (ReportSource& each : sources.records) {
    std::optional<Record> both;
    told_with_file(source.file, [&] { both = joined(each.record, source.record); });
    if (!both) continue;
    each = {.file = each.file + ", " + source.file, .record = std::move(*both)};
    return;
  }
  sources.records.push_back(std::move(source));
}

void read_folder(const files::path& folder, ReportSources& sources) {
  std::vector<files::path> found;
  for (const files::directory_entry& entry : files::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  bool found_some = false;
  for (const files::path& path : found) {
    if (means_to_be_a_record(path)) {
      add_source(read_source(path), sources);
      found_some = true;
    } else {
      sources.skipped.push_back(path.filename().string());
    }
  }
  if (!found_some) {
    fail(folder.string(), ": has no record (*.json written by pumice) in it");
  }
}

}  // namespace

ReportSources read_sources(const std::vector<files::path>& paths) {
  ReportSources sources;
  for (const files::path& path : paths) {
    if (files::is_directory(path)) {
      read_folder(path, sources);
    } else {
      add_source(read_source(path), sources);
    }
  }
  return sources;
}

void told_with_file(const std::string& file, const std::function<void()>& work) {
  try {
    work();
  } catch (const nlohmann::json::exception& error) {
    const std::string what = error.what();
    const std::size_t end_of_code = what.find("] ");
    fail(file, ": is not as docs/records.md says, ",
         end_of_code == std::string::npos ? what : what.substr(end_of_code + 2));
  } catch (const Error& error) {
    fail(file, ": ", error.what());
  }
}

}  // namespace pumice::report
