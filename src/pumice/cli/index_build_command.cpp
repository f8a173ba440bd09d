// pumice index build, refresh: linearise a model once, for many deletion requests.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "pumice/cli/command.h"
#include "pumice/cli/index_command.h"
#include "pumice/cli/index_data.h"
#include "pumice/cli/loaded_model.h"
#include "pumice/cli/progress_bars.h"
#include "pumice/core/memory.h"
#include "pumice/core/progress.h"
#include "pumice/index/forgetting_index.h"
#include "pumice/linalg/threads.h"

namespace pumice::cli {
namespace {

using Json = nlohmann::json;

// The same of both commands.
struct RunFlags {
  DataRequest data;
  std::optional<std::string> memory;
  std::optional<int> threads;
  bool quiet = false, json = false;
};

void add_run_options(CLI::App& command, RunFlags& flags) {
  add_data_options(command, flags.data);
  command
      .add_option("--memory", flags.memory,
                  "What kernel and factorization may take, such as 2G (default: half of what is "
                  "free)")
      ->type_name("BYTES");
  command.add_option("--threads", flags.threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--quiet", flags.quiet, "No progress");
  command.add_flag("--json", flags.json, "Print the result as JSON");
}

LinearProblemOptions begin_run(const RunFlags& flags, ProgressBars& bars) {
  LinearProblemOptions options{.progress = bars.teller()};
  try {
    if (flags.memory) options.memory = parse_bytes(*flags.memory);
  } catch (const Error& error) {
    throw UsageError(text("--", error.what()));
  }
  set_threads(flags.threads.value_or(available_cores()));
  return options;
}

void print_made(const std::string& folder, const ForgettingIndex& index, const IndexReport& report,
                bool as_json) {
  const IndexContent& content = index.content();
  const double bytes = static_cast<double>(
      std::filesystem::file_size(std::filesystem::path(folder) / "index.safetensors"));
  if (as_json) {
    std::printf("%s\n", Json{{"index", folder},
                             {"examples", content.examples()},
                             {"classes", content.classes()},
                             {"bytes", bytes},
                             {"scale", content.terms.scale},
                             {"ridge", content.terms.ridge},
                             {"solver_residual", report.relative_residual},
                             {"seconds", report.seconds},
                             {"ledger", index.ledger().head()}}
                            .dump(2)
                            .c_str());
    return;
  }
  std::printf("%s: %lld examples, %lld classes, %s; %s\n", folder.c_str(),
              static_cast<long long>(content.examples()), static_cast<long long>(content.classes()),
              bytes_text(bytes).c_str(), duration_text(report.seconds).c_str());
  std::printf("  %s\n", report.kernel.c_str());
  std::printf("  scale %g (%s), ridge %g, relative residual %.1e\n", content.terms.scale,
              content.terms.scale_rule.c_str(), content.terms.ridge, report.relative_residual);
  std::printf("%s", sensitivity(index));
  std::printf("Ledger: %s (note it elsewhere: 'pumice index verify --head' asks for it)\n",
              index.ledger().head().c_str());
}

struct BuildFlags {
  std::string model, init, out;
  std::optional<std::string> decay_centre, loss;
  std::optional<double> weight_decay, ridge, scale;
  double refresh_above = IndexTerms{}.refresh_above, retrain_above = IndexTerms{}.retrain_above;
  bool force = false;
  RunFlags run;
};

void check_flags(const CLI::App& command, const BuildFlags& flags) {
  refuse_empty_values(command, {"--model", "--init", "--out", "--data"});
  for (const auto& [name, value] : {std::pair{"--scale", flags.scale},
                                    {"--ridge", flags.ridge},
                                    {"--weight-decay", flags.weight_decay}}) {
    if (value && !(*value > 0)) throw UsageError(text(name, ": ", *value, ", must be > 0"));
  }
  for (const auto& [name, share] : {std::pair{"--refresh-above", flags.refresh_above},
                                    {"--retrain-above", flags.retrain_above}}) {
    if (!(share > 0 && share <= 1))
      throw UsageError(text(name, ": ", share, ", must be in (0, 1]"));
  }
  if (!flags.init.empty() && flags.decay_centre) {
    throw UsageError("--decay-centre: means nothing with --init, which says where decay pulls to");
  }
}

// Where decay pulled to, and how strongly: from the command line, or as the model says.
struct Objective {
  std::string centre_name;
  at::Tensor centre;
  double decay = 0;
};

Objective objective_of(const BuildFlags& flags, const Weights& weights,
                       const std::optional<Checkpoint>& start,
                       const std::optional<TrainingOptions>& recipe) {
  const bool says_zero = recipe && recipe->decay_centre == DecayCentre::zero;
  Objective objective{.centre_name = flags.decay_centre.value_or(says_zero ? "zero"
                                                                 : start   ? "start"
                                                                           : ""),
                      .centre = weights.flat};
  if (objective.centre_name.empty()) {
    throw UsageError(
        "--init: not given; where weight decay pulled to must be said: --init FILE, or "
        "--decay-centre zero or self");
  }
  if (objective.centre_name == "zero") objective.centre = at::zeros_like(weights.flat);
  if (objective.centre_name == "start") objective.centre = start->weights.flat;
  objective.decay = flags.weight_decay.value_or(recipe ? recipe->weight_decay : 0);
  if (!(objective.decay > 0) && !flags.ridge) {
    throw UsageError("--weight-decay: not known from the model or 0, must be given (or --ridge)");
  }
  return objective;
}

Applicability examine_point(const ForgettingTask& task, SharedProblems& shared,
                            const std::optional<Checkpoint>& start, const Metadata& metadata,
                            bool decay_known) {
  ApplicabilityOptions known{.decay_known = decay_known, .start_buffers = {}};
  if (start) known.start_buffers = start->model->buffers();
  if (metadata.contains("excluded")) known.excluded = metadata.at("excluded");
  Applicability found = examine(task, shared, known);
  // There is no cohort yet; every request looks at its own.
  std::erase_if(found.checks, [](const ApplicabilityCheck& check) {
    return check.name == "classes" || check.name == "duplicates";
  });
  return found;
}

void run_build(const CLI::App& command, const BuildFlags& flags) {
  check_flags(command, flags);
  ProgressBars bars(flags.run.quiet || flags.run.json);
  const LinearProblemOptions options = begin_run(flags.run, bars);
  if (std::filesystem::exists(flags.out)) {
    fail(flags.out, ": exists already, must not be overwritten; remove it or choose another");
  }
  const LoadedModel loaded = load_model(flags.model, command, flags.run.data);
  const Checkpoint& checkpoint = loaded.checkpoint;
  const Dataset& train = loaded.selection.train;
  check_data_digest(checkpoint.metadata, train);
  std::optional<Checkpoint> start;
  if (!flags.init.empty()) {
    start = open_checkpoint(flags.init);
    check_same_network(flags.init, *start, checkpoint.weights);
  }
  const auto recipe = stored_recipe(checkpoint.metadata);
  const Objective objective = objective_of(flags, checkpoint.weights, start, recipe);
  Split split;
  split.retain.resize(static_cast<std::size_t>(train.size()));
  std::iota(split.retain.begin(), split.retain.end(), 0);
  ForgettingTask task{.model = *checkpoint.model,
                      .weights = checkpoint.weights,
                      .centre = objective.centre,
                      .start = {},
                      .train = train,
                      .split = split,
                      .normalization = loaded.normalization,
                      .weight_decay = objective.decay,
                      .recipe = recipe.value_or(finetuning_recipe()),
                      .linear = options};
  if (flags.loss) task.loss = loss_named(*flags.loss);
  if (start) task.start = start->weights.flat;
  check(task);
  SharedProblems shared(task);
  const Applicability found =
      examine_point(task, shared, start, checkpoint.metadata, recipe.has_value());
  if (!flags.run.json) std::printf("Examination\n%s", found.text().c_str());
  if (found.advice() == Advice::refusal && !flags.force) {
    fail("examination: refused for the reason above, nothing was written; --force goes on anyway");
  }
  IndexSource source{.task = task,
                     .checkpoint = checkpoint,
                     .data = loaded.request,
                     .decay_centre = objective.centre_name,
                     .ridge = flags.ridge,
                     .scale = flags.scale,
                     .refresh_above = flags.refresh_above,
                     .retrain_above = flags.retrain_above};
  if (start) source.start = digest(*start->model, start->weights);
  const IndexReport report = build_index(flags.out, source, shared);
  bars.finish();
  print_made(flags.out, ForgettingIndex(flags.out), report, flags.run.json);
}

void add_build_options(CLI::App& command, BuildFlags& flags) {
  command.add_option("--model", flags.model, "The trained model (.safetensors or TorchScript .pt)")
      ->type_name("FILE")
      ->required();
  command
      .add_option("--init", flags.init,
                  "The weights its training started from (NAME.start.safetensors)")
      ->type_name("FILE");
  command.add_option("--out", flags.out, "The index: a folder that is made")
      ->type_name("DIR")
      ->required();
  command
      .add_option("--weight-decay", flags.weight_decay,
                  "The decay of the training (default: what the model says)")
      ->type_name("L");
  command
      .add_option("--decay-centre", flags.decay_centre,
                  "Where decay pulled to, if there is no --init: zero, or self (the model itself)")
      ->check(CLI::IsMember({"zero", "self"}));
  command.add_option("--loss", flags.loss, "cross-entropy (default) or squared")
      ->check(CLI::IsMember({"cross-entropy", "squared"}));
  command
      .add_option("--ridge", flags.ridge,
                  "Another weight decay for the solve (default: that of the training)")
      ->type_name("L");
  command
      .add_option("--scale", flags.scale,
                  "Length of every shift as a multiple of the solution (default: by the rule that "
                  "needs no unseen examples, at most 2)")
      ->type_name("S");
  command
      .add_option("--refresh-above", flags.refresh_above,
                  "Share forgotten since the point of linearisation at which to advise another")
      ->capture_default_str()
      ->type_name("SHARE");
  command
      .add_option("--retrain-above", flags.retrain_above,
                  "Share forgotten since the training at which to advise another training")
      ->capture_default_str()
      ->type_name("SHARE");
  command.add_flag("--force", flags.force, "Go on where the examination says no");
  add_run_options(command, flags.run);
}

struct RefreshFlags {
  std::string index, model;
  RunFlags run;
};

void run_refresh(const CLI::App& command, const RefreshFlags& flags) {
  refuse_empty_values(command, {"--model", "--data"});
  ProgressBars bars(flags.run.quiet || flags.run.json);
  const LinearProblemOptions options = begin_run(flags.run, bars);
  ForgettingIndex index(flags.index);
  const Checkpoint released = open_checkpoint(flags.model);
  check_same_network(flags.model, released, index.point().weights);
  const IndexData data = load_index_data(command, flags.run.data, index.content());
  const IndexReport report = index.refresh(released, data.train, options);
  bars.finish();
  print_made(flags.index, index, report, flags.run.json);
  if (!flags.run.json) {
    std::printf(
        "The old point is wiped: overwritten with zeros, synced, unlinked. Copies elsewhere (the "
        "original model, backups, older blocks of the drive) are not reached.\n");
  }
}

}  // namespace

void add_index_build(CLI::App& index) {
  CLI::App* command = index.add_subcommand(
      "build", "Linearise a model and keep what quick answers to deletion requests need");
  const auto flags = std::make_shared<BuildFlags>();
  add_build_options(*command, *flags);
  command->footer(
      "Data, recipe and weight decay are those that the model says, unless given again.\n"
      "Example: pumice index build --model w.safetensors --init w.start.safetensors --out w.index");
  command->callback([command, flags] { run_build(*command, *flags); });
}

void add_index_refresh(CLI::App& index) {
  CLI::App* command = index.add_subcommand(
      "refresh", "Linearise again at the released weights, and wipe the old point");
  const auto flags = std::make_shared<RefreshFlags>();
  command->add_option("INDEX", flags->index, "The index")->type_name("DIR")->required();
  command->add_option("--model", flags->model, "What the last request released")
      ->type_name("FILE")
      ->required();
  add_run_options(*command, flags->run);
  command->footer("Example: pumice index refresh w.index --model released-3.safetensors");
  command->callback([command, flags] { run_refresh(*command, *flags); });
}

}  // namespace pumice::cli
