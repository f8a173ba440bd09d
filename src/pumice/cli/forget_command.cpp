// pumice forget: a model, its data and a deletion request in; a scrubbed model and a record out.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "pumice/cli/command.h"
#include "pumice/cli/error_table.h"
#include "pumice/cli/forget_options.h"
#include "pumice/cli/forget_request.h"
#include "pumice/cli/indexed_forget.h"
#include "pumice/cli/process_team.h"
#include "pumice/cli/progress_bars.h"
#include "pumice/core/progress.h"
#include "pumice/core/revision.h"
#include "pumice/forgetting/applicability.h"
#include "pumice/forgetting/method_forecast.h"
#include "pumice/forgetting/scrub.h"
#include "pumice/linalg/threads.h"
#include "pumice/model/torchscript_model.h"
#include "pumice/parallel/process_group.h"
#include "pumice/record/record.h"

namespace pumice::cli {
namespace {

using Json = nlohmann::json;
namespace files = std::filesystem;

Errors judge(const ForgetRequest& request, const Weights& weights) {
  const Selection& selection = request.loaded.selection;
  const Dataset retained =
      request.split.retain.empty() ? Dataset{} : subset(selection.train, request.split.retain);
  return cli::judge(*request.loaded.checkpoint.model, weights, request.loaded.normalization,
                    subset(selection.train, request.split.cohort), retained, selection.test);
}

Metadata scrubbed_metadata(const ForgetRequest& request, const ForgettingSummary& summary) {
  Metadata metadata = request.loaded.checkpoint.metadata;
  // A foreign model said neither; an audit of the result need not be told again.
  store(metadata, request.loaded.request);
  store(metadata, request.loaded.normalization);
  metadata["created_by"] = text("pumice ", version());
  metadata["revision"] = revision();
  metadata["forgotten"] = text(request.split.cohort.size(), " of ",
                               request.loaded.selection.train.size(), " training examples");
  metadata["forgetting"] = text(summary.method, summary.noise ? ", with noise" : ", no noise");
  return metadata;
}

void print_traces(const ForgetFlags& flags) {
  std::printf("The cohort is still in: %s", flags.model.c_str());
  for (const std::string& file : {flags.cohort, flags.distribution}) {
    if (!file.empty()) std::printf(", %s", file.c_str());
  }
  if (!flags.record.empty()) {
    std::printf(", %s (key of its digest)",
                flags.key.empty() ? (flags.record + ".key").c_str() : flags.key.c_str());
  }
  std::printf("; and in the data, logs and checkpoints of its training.\n");
}

void print_forecast(const ForgetFlags& flags, const ForgettingTask& task, SharedProblems& shared,
                    ProgressBars& bars, const ProcessGroup& group) {
  std::vector<ScrubOptions> requests;
  for (const std::string& name : flags.methods) {
    requests.push_back({.method = name, .options = flags.method, .noise = flags.noise});
  }
  const std::vector<MethodForecast> forecasts = forecast_methods(task, shared, requests);
  bars.finish();
  if (!group.first()) return;
  if (flags.json) {
    Json methods = Json::array();
    for (const MethodForecast& forecast : forecasts) methods.push_back(to_json(forecast));
    std::printf("%s\n", Json{{"dry_run", true},
                             {"examples", task.train.size()},
                             {"cohort_size", task.split.cohort.size()},
                             {"threads", at::get_num_threads()},
                             {"methods", methods}}
                            .dump(2)
                            .c_str());
    return;
  }
  std::printf("Forecast for %zu of %ld examples, %d threads; nothing is written\n%s",
              task.split.cohort.size(), static_cast<long>(task.train.size()), at::get_num_threads(),
              forecast_text(forecasts).c_str());
}

// The part of the command that all processes take part in. The shifts of methods that solve nothing
// stay empty: the first process makes them alone.
struct Solved {
  Applicability applicability;
  std::vector<std::optional<ShiftResult>> shifts;
};

Solved solve(const ForgetFlags& flags, const ForgetRequest& request, const ForgettingTask& task,
             ProcessGroup& group, ProgressBars& bars) {
  SharedProblems shared(task);
  ApplicabilityOptions known{.decay_known = request.recipe.has_value(), .start_buffers = {}};
  if (request.start) known.start_buffers = request.start->model->buffers();
  known.look_for_duplicates = group.first();
  const Metadata& metadata = request.loaded.checkpoint.metadata;
  if (metadata.contains("excluded")) known.excluded = metadata.at("excluded");
  Solved solved{.applicability = examine(task, shared, known), .shifts = {}};
  if (!flags.json && group.first()) {
    std::printf("Examination\n%s", solved.applicability.text().c_str());
    std::fflush(stdout);
  }
  at::Tensor refused = at::tensor({solved.applicability.advice() == Advice::refusal ? 1 : 0});
  group.broadcast(refused);
  if (refused.item<std::int64_t>() && !flags.force) {
    fail("examination: refused for the reason above, nothing was written; --force goes on anyway");
  }
  for (const std::string& name : flags.methods) {
    const MethodEntry& entry = method_named(name);
    solved.shifts.emplace_back();
    if (!entry.needs_ridge) continue;
    solved.shifts.back() = entry.make(flags.method)->shift(task, shared);
    bars.finish();
  }
  return solved;
}

// What became of each method, in the order they were asked for.
struct Released {
  // Without a sample if it did not converge and that is not accepted.
  std::vector<Scrubbed> results;
  Errors before;
  std::vector<Errors> after;
  std::string failed;  // methods that did not converge, and why; empty if there is none

  // Only to those that ran out of iterations more of them are of any use.
  bool more_iterations_would_help() const {
    return std::any_of(results.begin(), results.end(),
                       [](const Scrubbed& result) { return result.summary.out_of_iterations; });
  }
};

Released release_all(const ForgetFlags& flags, const ForgetRequest& request,
                     const ForgettingTask& task, const Solved& solved, ProgressBars& bars) {
  Released released{
      .results = {}, .before = judge(request, task.weights), .after = {}, .failed = {}};
  SharedProblems none(task);
  for (std::size_t i = 0; i < flags.methods.size(); ++i) {
    const std::string& name = flags.methods[i];
    const ScrubOptions options{.method = name, .options = flags.method, .noise = flags.noise};
    released.results.push_back(solved.shifts[i]
                                   ? release(task, *solved.shifts[i], options, request.references)
                                   : scrub(task, none, options, request.references));
    bars.finish();
    Scrubbed& result = released.results.back();
    if (!result.summary.converged) {
      released.failed +=
          text(released.failed.empty() ? "" : "; ", name, ": ", result.summary.explanation);
      if (!flags.accept_unconverged) result.sample = {};
    }
    released.after.push_back(result.sample.flat.defined() ? judge(request, result.sample)
                                                          : Errors{});
  }
  return released;
}

Json make_record(const ForgetFlags& flags, const ForgetRequest& request, const ForgettingTask& task,
                 const Applicability& applicability, const Released& released) {
  const Checkpoint& checkpoint = request.loaded.checkpoint;
  Json methods = Json::array();
  for (std::size_t i = 0; i < released.results.size(); ++i) {
    Json method = to_json(released.results[i].summary);
    if (released.results[i].sample.flat.defined()) {
      method["model"] = digest(*checkpoint.model, released.results[i].sample);
      method["errors"] = errors_json(released.after[i]);
    }
    methods.push_back(method);
  }
  Json content{{"model", digest(*checkpoint.model, checkpoint.weights)},
               {"data", digest(request.loaded.selection.train)},
               {"data_request", to_json(request.loaded.request)},
               {"examples", task.train.size()},
               {"cohort_size", request.split.cohort.size()},
               {"weight_decay", task.weight_decay},
               {"loss", loss_name(task.loss)},
               {"decay_centre", pulls_to_zero(flags, request) ? "zero"
                                : request.start               ? "start"
                                                              : "self"},
               {"threads", at::get_num_threads()},
               {"seed", task.recipe.seed},
               {"order_seed", task.recipe.order_seed},
               {"errors_before", errors_json(released.before)},
               {"applicability", to_json(applicability)},
               {"methods", methods}};
  if (request.start) content["start"] = digest(*request.start->model, request.start->weights);
  if (flags.noise.seed) content["noise_seed"] = *flags.noise.seed;
  if (flags.record_ids) content["cohort_ids"] = request.cohort_ids;
  return content;
}

void write_models(const ForgetFlags& flags, const ForgetRequest& request,
                  const std::vector<Scrubbed>& results) {
  const std::string extension = file_extension(*request.loaded.checkpoint.model);
  if (several_methods(flags)) {
    files::create_directories(flags.out);
    if (!flags.distribution.empty()) files::create_directories(flags.distribution);
  }
  for (const Scrubbed& result : results) {
    if (!result.sample.flat.defined()) continue;
    request.loaded.checkpoint.model->save(
        out_path(flags, flags.out, result.summary.method, extension), result.sample,
        scrubbed_metadata(request, result.summary));
    if (!flags.distribution.empty()) {
      write_distribution(out_path(flags, flags.distribution, result.summary.method, ".safetensors"),
                         result.distribution);
    }
  }
}

void print_results(const ForgetFlags& flags, const Released& released, bool unfinished) {
  print_errors_head();
  print_errors("before", released.before);
  for (std::size_t i = 0; i < released.results.size(); ++i) {
    if (released.results[i].sample.flat.defined()) {
      print_errors(released.results[i].summary.method.c_str(), released.after[i]);
    }
  }
  for (const Scrubbed& result : released.results) {
    std::printf("%s\n", several_methods(flags) ? result.summary.brief().c_str()
                                               : result.summary.full().c_str());
  }
  if (flags.noise.scale == 0) {
    std::printf("Without noise no bound on what the weights still tell holds.\n");
  }
  if (flags.noise.seed) {
    std::printf(
        "--noise-seed: the noise can be repeated and subtracted, this release is not private.\n");
  }
  if (!unfinished) std::printf("Written: %s\n", flags.out.c_str());
  print_traces(flags);
}

// What is told of methods that did not converge, when all else is written; empty if there is none.
std::string forget(const CLI::App& command, const ForgetFlags& flags, ProcessGroup& group) {
  set_threads(flags.threads.value_or(std::max(1, available_cores() / group.sharing_cores())));
  const ForgetRequest request = open_request(command, flags, group.first());
  ForgettingTask task = make_task(flags, request);
  const auto identity = identity_of(task, flags);
  for (const auto& [what, value] : identity) group.agree(what, value);
  share_work(group, task.linear);
  ProgressBars bars(flags.quiet || flags.json || !group.first());
  task.linear.progress = bars.teller();
  task.linear.iterated = [&bars](const SolveProgress& progress) {
    bars.note(text("iteration ", progress.iteration, ", residual ", std::setprecision(2),
                   progress.relative_residual));
  };
  if (flags.dry_run) {
    SolveCheckpoint none({});  // for its memory, which a solve that is resumable takes
    task.linear.iterates = &none;
    SharedProblems shared(task);
    print_forecast(flags, task, shared, bars, group);
    group.close();
    return {};
  }
  SolveCheckpoint checkpoint = open_solve_checkpoint(flags, identity, group.first());
  task.linear.iterates = &checkpoint;

  const Solved solved = solve(flags, request, task, group, bars);
  group.close();
  if (!group.first()) return {};
  if (checkpoint.restored_iterations() > 0 && !flags.json) {
    std::printf("Went on from %s: %lld iterations were done before.\n", checkpoint.path().c_str(),
                static_cast<long long>(checkpoint.restored_iterations()));
  }
  const Released released = release_all(flags, request, task, solved, bars);
  write_models(flags, request, released.results);
  Record record{.kind = "forget",
                .content = make_record(flags, request, task, solved.applicability, released)};
  if (!group.alone()) record.content["processes"] = group.size();
  if (!flags.record.empty()) {
    const std::string key = read_or_make_key(flags.key.empty() ? flags.record + ".key" : flags.key);
    record.content["cohort_digest"] = keyed_digest(key, request.cohort_ids);
    write_record(flags.record, record);
  }
  const bool unfinished = !released.failed.empty() && !flags.accept_unconverged;
  if (unfinished && released.more_iterations_would_help()) {
    checkpoint.keep();
  } else {
    checkpoint.remove();
  }
  if (flags.json) {
    std::printf("%s\n", to_json(record).dump(2).c_str());
  } else {
    print_results(flags, released, unfinished);
  }
  if (!unfinished) return {};
  return text("not converged, no model was written for it (--accept-unconverged writes it): ",
              released.failed, unfinished_checkpoint_text(checkpoint));
}

void run_forget(const CLI::App& command, ForgetFlags& flags) {
  check_forget_flags(command, flags);
  if (!flags.index.empty()) {
    const Launch launch = read_launch(launch_environment());
    if (launch.size > 1) {
      fail("--index: a request to an index is answered by one process, this is one of ",
           launch.size, "; start it without mpirun, srun or torchrun");
    }
    set_threads(flags.threads.value_or(available_cores()));
    return run_indexed_forget(command, flags);
  }
  ProcessGroup group(read_launch(launch_environment()), group_options(flags));
  std::string unconverged;
  try {
    unconverged = forget(command, flags, group);
  } catch (const std::exception& error) {
    group.give_up(error.what());
    const std::string trace = group.first() ? kept_checkpoint_text(checkpoint_path(flags)) : "";
    if (!trace.empty()) std::fprintf(stderr, "pumice: stopped%s\n", trace.c_str());
    throw;
  }
  if (!unconverged.empty()) fail(unconverged);
}

}  // namespace

void add_forget_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("forget", "Remove what a model learned from a cohort of its examples");
  const auto flags = std::make_shared<ForgetFlags>();
  add_forget_options(*command, *flags);
  command->footer(
      "Data, recipe and weight decay are those that the model says, unless given again.\n"
      "Example: pumice forget --model w.safetensors --init w.start.safetensors --cohort cohort.txt "
      "--noise 1e-9 --out scrubbed.safetensors --record forget.json\n"
      "What it will cost: the same with --dry-run.\n"
      "Requests again and again: pumice index build --help, then pumice forget --index INDEX "
      "--cohort cohort.txt --noise 1e-9 --out released.safetensors");
  command->callback([command, flags] { run_forget(*command, *flags); });
}

}  // namespace pumice::cli
