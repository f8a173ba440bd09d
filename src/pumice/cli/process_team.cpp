#include "pumice/cli/process_team.h"

#include <ios>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/core/revision.h"

namespace pumice::cli {
namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

}  // namespace

ProcessGroupOptions group_options(const ForgetFlags& flags) {
  return {.heartbeat = heartbeat_times(flags.heartbeat_limit),
          .patience = milliseconds_of(flags.join_limit),
          .on_loss = [&flags,
                      rank = read_launch(launch_environment()).rank](const std::string& sentence) {
            end_process(text("rank ", rank, ": ", sentence,
                             rank == 0 ? kept_checkpoint_text(checkpoint_path(flags)) : ""));
          }};
}

RequestIdentity identity_of(const ForgettingTask& task, const ForgetFlags& flags) {
  Digest cohort, options;
  for (const std::int64_t position : task.split.cohort) {
    cohort.add_number(static_cast<std::uint64_t>(position));
  }
  const MethodOptions& method = flags.method;
  options.add_number(method.linearize_at == LinearizeAt::start);
  options.add_number(method.trapezium);
  options.add_text(flags.preconditioner ? text(*flags.preconditioner) : "");
  options.add_text(flags.max_iterations ? text(*flags.max_iterations) : "");
  for (const std::optional<double>& number :
       {std::optional(task.weight_decay), method.ridge, method.scale, flags.tolerance}) {
    options.add_text(number ? text(std::hexfloat, *number) : "");
  }
  for (const std::optional<std::string>& word : {flags.curvature, flags.solver}) {
    options.add_text(word.value_or(""));
  }
  options.add_text(loss_name(task.loss));
  for (const std::string& name : flags.methods) options.add_text(name);
  return {{"program", text(version(), " ", revision())},
          {"model", digest(task.model, task.weights)},
          {"start", digest({task.weights.layout, task.centre.to(at::kFloat)})},
          {"data", digest(task.train)},
          {"cohort", cohort.label()},
          {"options", options.label()}};
}

SolveCheckpoint open_solve_checkpoint(const ForgetFlags& flags, const RequestIdentity& identity,
                                      bool writes) {
  if (!writes) return SolveCheckpoint({});
  Digest binding;
  for (const auto& [what, value] : identity) {
    // A newer program, or another tolerance, may go on where an older one stopped.
    if (what != "program" && what != "options") binding.add_text(value);
  }
  return SolveCheckpoint({.path = checkpoint_path(flags),
                          .every = milliseconds_of(flags.checkpoint_every),
                          .binding = binding.label(),
                          .ignore_existing = flags.force});
}

void share_work(ProcessGroup& group, LinearProblemOptions& options) {
  if (group.alone()) return;
  options.shard = {.index = group.rank(), .count = group.size()};
  options.sum_over_processes = [&group](at::Tensor& values) { group.sum(values); };
  options.gather_tiles = [&group](const at::Tensor& own, const std::vector<at::Tensor>& places) {
    group.gather(own, places);
  };
  if (!options.memory) options.memory = available_memory() / 2 / group.sharing_memory();
}

std::filesystem::path checkpoint_path(const ForgetFlags& flags) {
  if (!flags.checkpoint.empty() || flags.out.empty()) return flags.checkpoint;
  std::filesystem::path out = flags.out;
  if (!out.has_filename()) out = out.parent_path();  // a folder, with its slash
  return out.string() + ".checkpoint";
}

std::string unfinished_checkpoint_text(const SolveCheckpoint& checkpoint) {
  if (!checkpoint.exists()) return "";
  return text("; its iterates are in ", checkpoint.path().string(),
              ", which tells of the cohort: ask for this method alone with --checkpoint ",
              checkpoint.path().string(),
              " and outputs that are not there yet to go on, or remove it");
}

std::string kept_checkpoint_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  return text("; the same command goes on from ", path.string(),
              ", which tells of the cohort: remove it if you do not go on");
}

}  // namespace pumice::cli
