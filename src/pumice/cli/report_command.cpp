// pumice report: records in, one HTML file out that needs nothing else.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "pumice/cli/command.h"
#include "pumice/cli/report_command.h"
#include "pumice/core/atomic_file.h"
#include "pumice/core/revision.h"
#include "pumice/report/page.h"
#include "pumice/report/report_source.h"

namespace pumice::cli {
namespace {

namespace files = std::filesystem;

struct ReportFlags {
  std::vector<std::string> records;
  std::string out;
  bool force = false;
};

void run_report(const CLI::App& command, const ReportFlags& flags) {
  refuse_empty_values(command, {"--out"});
  if (files::path(flags.out).extension() != ".html") {
    throw UsageError(text("--out: '", flags.out, "', must end in .html"));
  }
  if (files::exists(flags.out) && !flags.force) {
    fail(flags.out, ": exists already, must not be overwritten without --force");
  }
  const WrittenReport written =
      write_report({flags.records.begin(), flags.records.end()}, flags.out);
  std::size_t figures = 0;
  for (const report::ReportPart& part : written.view.parts) figures += part.figures.size();
  for (const std::string& file : written.skipped) {
    std::printf("Skipped: %s, is no record\n", file.c_str());
  }
  for (const report::SubjectVerdict& verdict : written.view.summary.verdicts) {
    std::printf("  %-14s %s\n", verdict.subject.c_str(), verdict.verdict.c_str());
  }
  std::printf("Written: %s, %zu figure%s from %zu record%s, %zu kB\n", flags.out.c_str(), figures,
              figures == 1 ? "" : "s", written.records, written.records == 1 ? "" : "s",
              written.bytes / 1000);
}

}  // namespace

WrittenReport write_report(const std::vector<files::path>& records, const files::path& out) {
  const report::ReportSources sources = report::read_sources(records);
  WrittenReport written{.view = report::report_view(sources.records),
                        .skipped = sources.skipped,
                        .records = sources.files};
  const std::string page =
      report::page(written.view, text("pumice ", version(), ", revision ", revision()));
  write_file_atomically(out, page);
  written.bytes = page.size();
  return written;
}

void add_report_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "Make one self-contained HTML file of records");
  const auto flags = std::make_shared<ReportFlags>();
  command->add_option("records", flags->records, "Record files, or folders that hold them")
      ->type_name("DIR|record.json")
      ->required();
  command->add_option("--out", flags->out, "The page, *.html")->type_name("FILE")->required();
  command->add_flag("--force", flags->force, "Overwrite");
  command->footer("Example: pumice report forget.json audit.json --out report.html");
  command->callback([command, flags] { run_report(*command, *flags); });
}

}  // namespace pumice::cli
