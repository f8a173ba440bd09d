// pumice run: a protocol in, a record out.
#include "pumice/cli/run_command.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "pumice/cli/command.h"
#include "pumice/core/memory.h"
#include "pumice/experiment/experiment.h"
#include "pumice/experiment/results_table.h"
#include "pumice/linalg/threads.h"
#include "pumice/record/record.h"

namespace pumice::cli {
namespace {

namespace files = std::filesystem;
using Json = nlohmann::json;

struct RunFlags {
  std::string protocol, out, key;
  std::vector<std::uint64_t> seeds;
  bool dry_run = false, quiet = false, json = false;
  std::optional<int> threads;
};

void print_steps(const Experiment& experiment, bool as_json) {
  const std::vector<StepListing> steps = experiment.steps();
  double left = 0, bytes = 0;
  Json list = Json::array();
  for (const StepListing& step : steps) {
    if (!step.done) {
      left += step.seconds;
      bytes = std::max(bytes, static_cast<double>(step.bytes));
    }
    if (as_json) {
      list.push_back({{"title", step.title},
                      {"done", step.done},
                      {"seconds", step.seconds},
                      {"bytes", step.bytes},
                      {"folder", step.folder.string()}});
      continue;
    }
    std::printf(
        "%-5s %9s  %10s  %s\n", step.done ? "done" : "", duration_text(step.seconds).c_str(),
        step.done ? "" : bytes_text(static_cast<double>(step.bytes)).c_str(), step.title.c_str());
  }
  if (as_json) {
    std::printf("%s\n",
                Json{{"steps", list}, {"seconds_left", left}, {"bytes", bytes}}.dump(2).c_str());
    return;
  }
  std::printf(
      "%zu steps; about %s and %s of memory for those that are left. A forecast: networks are "
      "counted at rates measured now, trainings that may stop early at half of their epochs.\n",
      steps.size(), duration_text(left).c_str(), bytes_text(bytes).c_str());
}

Protocol chosen_protocol(const ExperimentCall& call) {
  const Protocol protocol = read_protocol(call.protocol);
  return call.seeds.empty() ? protocol : with_seeds(protocol, call.seeds);
}

void run_run(const RunFlags& flags) {
  set_threads(flags.threads.value_or(available_cores()));
  std::string seeds = flags.seeds.empty() ? "" : " --seeds";
  for (const std::uint64_t seed : flags.seeds) seeds += text(" ", seed);
  ExperimentCall call{.protocol = flags.protocol,
                      .out = flags.out,
                      .key = flags.key,
                      .command = "pumice run " + flags.protocol + seeds,
                      .seeds = flags.seeds,
                      .quiet = flags.quiet || flags.json};
  if (flags.dry_run) {
    print_steps(
        Experiment(chosen_protocol(call), flags.out, flags.threads.value_or(available_cores())),
        flags.json);
    return;
  }
  const FinishedExperiment finished = run_experiment(call);
  if (flags.json) {
    std::printf("%s\n", to_json(finished.record).dump(2).c_str());
    return;
  }
  print_results(finished);
}

}  // namespace

FinishedExperiment run_experiment(const ExperimentCall& call) {
  Experiment experiment(chosen_protocol(call), call.out, at::get_num_threads());
  const Experiment::Summary summary =
      experiment.run(call.quiet ? ProgressMode::quiet : ProgressMode::automatic);
  const files::path out = call.out;
  const files::path key_file = call.key.empty() ? out / "record.key" : files::path(call.key);
  FinishedExperiment finished{
      .record = {.kind = "experiment",
                 .content = experiment.record(call.command, read_or_make_key(key_file))},
      .record_file = out / "record.json",
      .summary = summary,
      .traces = experiment.traces()};
  finished.traces.push_back(key_file);
  write_record(finished.record_file, finished.record);
  return finished;
}

void print_results(const FinishedExperiment& finished) {
  std::printf("%s\n", results_table(finished.record.content).c_str());
  std::printf("%lld steps, %lld of them done before; %s.\n",
              static_cast<long long>(finished.summary.steps),
              static_cast<long long>(finished.summary.done_before),
              duration_text(finished.summary.seconds).c_str());
  std::printf(
      "The noise of an experiment comes from its seeds: no model of it is fit to be released.\n");
  std::printf("The cohorts are still in:");
  for (const files::path& trace : finished.traces) std::printf("\n  %s", trace.c_str());
  std::printf("\nand in the data that they were drawn from.\n");
  std::printf("Written: %s\n", finished.record_file.c_str());
}

void add_run_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Execute an experiment that a protocol describes");
  const auto flags = std::make_shared<RunFlags>();
  command->add_option("protocol", flags->protocol, "The protocol (docs/protocols.md)")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--out", flags->out,
                   "Folder for steps and record; an interrupted run in it is continued")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("--key", flags->key,
                   "Key of the cohorts' digests in the record (default: DIR/record.key, made if "
                   "missing)")
      ->type_name("FILE");
  command
      ->add_option("--seeds", flags->seeds,
                   "Only these of the protocol's seeds; 'pumice report' joins their records")
      ->type_name("SEED…");
  command->add_flag("--dry-run", flags->dry_run,
                    "Only list the steps: which are done, how long the others will take");
  command->add_option("--threads", flags->threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--quiet", flags->quiet, "No progress");
  command->add_flag("--json", flags->json, "Print the record (or the steps) as JSON");
  command->footer("Example: pumice run protocols/demo.toml --out demo");
  command->callback([command, flags] {
    refuse_empty_values(*command, {"protocol", "--out", "--key"});
    run_run(*flags);
  });
}

}  // namespace pumice::cli
