// pumice demo: the whole story in one command.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "pumice/cli/command.h"
#include "pumice/cli/report_command.h"
#include "pumice/cli/run_command.h"
#include "pumice/experiment/results_table.h"
#include "pumice/linalg/threads.h"

namespace pumice::cli {
namespace {

namespace files = std::filesystem;

constexpr const char* featured_method = "consistent";

struct DemoFlags {
  std::string out = "pumice-demo";
  bool quiet = false;
  std::optional<int> threads;
};

// share/pumice beside the program's bin folder (where it is installed), else the source tree that
// it was built from.
files::path demo_protocol() {
  std::error_code reason;
  const files::path program = files::read_symlink("/proc/self/exe", reason);
  std::vector<files::path> places;
  if (!reason) {
    places.push_back(program.parent_path() / ".." / PUMICE_DATA_DIR / "protocols" / "demo.toml");
  }
  places.emplace_back(PUMICE_SOURCE_DIR "/protocols/demo.toml");
  for (const files::path& place : places) {
    if (files::exists(place)) return place.lexically_normal();
  }
  fail("demo: no ", places.front().lexically_normal().string(), " and no ", places.back().string(),
       "; name the protocol with 'pumice run'");
}

void run_demo(const DemoFlags& flags) {
  set_threads(flags.threads.value_or(available_cores()));
  const FinishedExperiment finished = run_experiment({.protocol = demo_protocol().string(),
                                                      .out = flags.out,
                                                      .key = {},
                                                      .command = "pumice demo",
                                                      .quiet = flags.quiet});
  print_results(finished);
  const files::path report = files::path(flags.out) / "report.html";
  write_report({finished.record_file}, report);
  std::printf("\nReport: %s\n%s", report.c_str(),
              three_lines(finished.record.content, featured_method).c_str());
}

}  // namespace

void add_demo_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "demo", "Train, forget, audit and report on a small real data set (some minutes)");
  const auto flags = std::make_shared<DemoFlags>();
  command
      ->add_option("--out", flags->out, "Folder for everything; an interrupted demo is continued")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--quiet", flags->quiet, "No progress");
  command->footer("Example: pumice demo --out demo");
  command->callback([command, flags] {
    refuse_empty_values(*command, {"--out"});
    run_demo(*flags);
  });
}

}  // namespace pumice::cli
