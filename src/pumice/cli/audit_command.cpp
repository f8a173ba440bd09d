// pumice audit: what a model still knows of a cohort, each number beside the original's and
// retrained models', with a verdict.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "pumice/cli/audit_options.h"
#include "pumice/cli/audit_table.h"
#include "pumice/cli/command.h"
#include "pumice/cli/loaded_model.h"
#include "pumice/cli/progress_bars.h"
#include "pumice/data/split.h"
#include "pumice/experiment/references.h"
#include "pumice/experiment/shadow_models.h"
#include "pumice/forgetting/scrub.h"
#include "pumice/linalg/threads.h"
#include "pumice/record/record.h"

namespace pumice::cli {
namespace {

using Json = nlohmann::json;
namespace files = std::filesystem;

// Everything that is opened before any work is done.
struct Case {
  LoadedModel loaded;  // the model to judge, and the data
  Checkpoint original;
  std::optional<Checkpoint> start;
  std::vector<Checkpoint> references;
  std::optional<WeightDistribution> distribution;
  std::vector<std::string> cohort_ids;
  Split split;
  std::optional<TrainingOptions> recipe;  // of the original
};

Case open_case(const CLI::App& command, const AuditFlags& flags) {
  Case opened{.loaded = load_model(flags.model, command, flags.data),
              .original = open_checkpoint(flags.original),
              .start = {},
              .references = {},
              .distribution = {},
              .cohort_ids = read_ids(flags.cohort),
              .split = {},
              .recipe = {}};
  const Weights& weights = opened.loaded.checkpoint.weights;
  check_same_network(flags.original, opened.original, weights);
  if (!flags.init.empty()) {
    opened.start = open_checkpoint(flags.init);
    check_same_network(flags.init, *opened.start, weights);
  }
  if (!flags.retrain() && !flags.no_reference()) {
    for (const std::string& file : flags.references) {
      opened.references.push_back(open_checkpoint(file));
      check_same_network(file, opened.references.back(), weights);
    }
  }
  if (!flags.distribution.empty()) {
    opened.distribution = read_distribution(flags.distribution, weights.layout);
  }
  const Selection& selection = opened.loaded.selection;
  opened.split = make_split(selection.train, selection.test, opened.cohort_ids);
  check_data_digest(opened.original.metadata, selection.train);
  opened.recipe = stored_recipe(opened.original.metadata);
  if (flags.shadows && !opened.recipe) {
    fail(flags.original, ": does not say how it was trained, --shadows needs to know");
  }
  if (flags.retrain() && !opened.recipe) {
    fail(flags.original, ": does not say how it was trained, --reference retrain needs to know");
  }
  if (!flags.record.empty() && files::exists(flags.record) && !flags.force) {
    fail(flags.record, ": exists already, must not be overwritten without --force");
  }
  return opened;
}

// The original's training as a task: noise is shaped by its retained examples, and shadow models
// are trained and scrubbed as it was.
ForgettingTask task_of(const AuditFlags& flags, const Case& opened, ProgressBars& bars) {
  const bool to_zero = opened.recipe && opened.recipe->decay_centre == DecayCentre::zero;
  const Weights& weights = opened.original.weights;
  ForgettingTask task{.model = *opened.original.model,
                      .weights = weights,
                      .centre = to_zero        ? at::zeros_like(weights.flat)
                                : opened.start ? opened.start->weights.flat
                                               : weights.flat,
                      .start = {},
                      .train = opened.loaded.selection.train,
                      .split = opened.split,
                      .normalization = opened.loaded.normalization,
                      .weight_decay = opened.recipe ? opened.recipe->weight_decay : 0,
                      .recipe = opened.recipe.value_or(finetuning_recipe())};
  if (opened.start) task.start = opened.start->weights.flat;
  if (opened.loaded.selection.validation.size() > 0) {
    task.validation = &opened.loaded.selection.validation;
  }
  task.linear.memory = flags.audit.memory;
  task.linear.progress = bars.teller();
  return task;
}

// The references with the noise that the model has, so that their bounds speak of the same thing.
std::vector<AuditedModel> make_references(const AuditFlags& flags, const Case& opened,
                                          const ForgettingTask& task, ProgressBars& bars) {
  std::vector<AuditedModel> references;
  for (const Checkpoint& reference : opened.references) {
    references.push_back({reference.model, reference.weights, {}});
  }
  if (flags.retrain()) {
    for (const Weights& weights : retrained_references(*opened.start->model, opened.start->weights,
                                                       task.train, task.split, task.normalization,
                                                       {.recipe = *opened.recipe,
                                                       .count = flags.reference_count.value_or(3),
                                                       .progress = bars.teller()})) {
      references.push_back({opened.start->model, weights, {}});
    }
  }
  for (AuditedModel& reference : references) {
    reference.distribution = with_noise(task, flags.noise, reference.released);
  }
  return references;
}

Json make_record(const AuditFlags& flags, const Case& opened, const AuditTask& task,
                 const AuditReport& report, double seconds) {
  const Checkpoint& checkpoint = opened.loaded.checkpoint;
  Json content = to_json(report);
  content["model"] = digest(*checkpoint.model, checkpoint.weights);
  content["original"] = digest(*opened.original.model, opened.original.weights);
  if (opened.start) content["start"] = digest(*opened.start->model, opened.start->weights);
  content["references"] = Json::array();
  for (const AuditedModel& reference : task.references) {
    content["references"].push_back(digest(*reference.model, reference.released));
  }
  content["data"] = digest(opened.loaded.selection.train);
  content["data_request"] = to_json(opened.loaded.request);
  content["cohort_size"] = opened.split.cohort.size();
  content["examples"] = task.train.size();
  content["test_examples"] = task.test.size();
  content["noise"] = nullptr;
  if (flags.noise.scale > 0) {
    content["noise"] = {{"scale", flags.noise.scale},
                        {"shape", noise_shape_name(flags.noise.shape)},
                        {"mean_known", opened.distribution.has_value()}};
  }
  if (flags.audit.floor > 0) content["floor"] = flags.audit.floor;
  content["answers"] = flags.audit.answers == Answers::softmax ? "softmax" : "logits";
  if (flags.shadows) content["shadows"] = *flags.shadows;
  content["threads"] = at::get_num_threads();
  content["seconds"] = seconds;
  return content;
}

void print_limits(const AuditFlags& flags, const AuditTask& task) {
  if (task.references.size() < 2) {
    std::printf(
        "%s: most verdicts need two retrained models; --reference retrain trains them, given "
        "--init.\n",
        task.references.empty() ? "No reference" : "One reference");
  }
  if (flags.noise.scale == 0) {
    std::printf("No noise: nothing bounds what the weights still tell.\n");
  } else if (flags.distribution.empty()) {
    std::printf(
        "Without --distribution the model itself stands for the mean of its noise in the "
        "bounds.\n");
  }
}

void run_audit(const CLI::App& command, AuditFlags& flags) {
  check_audit_flags(command, flags);
  set_threads(flags.threads.value_or(available_cores()));
  const auto begin = std::chrono::steady_clock::now();
  const Case opened = open_case(command, flags);
  ProgressBars bars(flags.quiet || flags.json);
  const ForgettingTask forgetting = task_of(flags, opened, bars);
  const Checkpoint& checkpoint = opened.loaded.checkpoint;

  AuditTask task{.train = opened.loaded.selection.train,
                 .split = opened.split,
                 .test = opened.loaded.selection.test,
                 .normalization = opened.loaded.normalization,
                 .original = without_noise(opened.original.model, opened.original.weights),
                 .references = {}};
  flags.audit.progress = bars.teller();
  Audit(task, flags.audit);  // what is wrong is told before references are trained
  task.references = make_references(flags, opened, forgetting, bars);
  task.original.distribution = with_noise(forgetting, flags.noise, opened.original.weights);
  AuditedModel subject{checkpoint.model, checkpoint.weights, {}};
  subject.distribution = opened.distribution
                             ? *opened.distribution
                             : with_noise(forgetting, flags.noise, checkpoint.weights);
  std::optional<ShadowMargins> shadows;
  if (flags.shadows) {
    const ShadowModels models =
        train_shadows(forgetting, {.count = *flags.shadows, .progress = bars.teller()});
    shadows = shadow_margins(forgetting, task.test, models,
                             {.method = flags.shadow_method, .noise = flags.noise});
  }
  Audit audit(task, flags.audit);
  const AuditReport report = audit.judge(files::path(flags.model).filename().string(), subject,
                                         shadows ? &*shadows : nullptr);
  bars.finish();

  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Record record{.kind = "audit", .content = make_record(flags, opened, task, report, seconds)};
  if (!flags.record.empty()) {
    const std::string key = read_or_make_key(flags.key.empty() ? flags.record + ".key" : flags.key);
    record.content["cohort_digest"] = keyed_digest(key, opened.cohort_ids);
    write_record(flags.record, record);
  }
  if (flags.json) {
    std::printf("%s\n", to_json(record).dump(2).c_str());
    return;
  }
  std::printf("%s: %zu of %lld training examples were to be forgotten; %zu retrained models, %s\n",
              flags.model.c_str(), opened.split.cohort.size(),
              static_cast<long long>(task.train.size()), task.references.size(),
              duration_text(seconds).c_str());
  std::printf("%s", audit_table(report, flags.explain).c_str());
  print_limits(flags, task);
  if (!flags.record.empty()) std::printf("Written: %s\n", flags.record.c_str());
}

}  // namespace

void add_audit_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("audit", "Measure what a model still knows of a cohort");
  const auto flags = std::make_shared<AuditFlags>();
  add_audit_options(*command, *flags);
  command->footer(
      "Data are those that the model says, unless given again.\n"
      "Example: pumice audit --model scrubbed.safetensors --original w.safetensors --init "
      "w.start.safetensors --reference retrain --cohort cohort.txt --noise 1e-9 --record "
      "audit.json");
  command->callback([command, flags] { run_audit(*command, *flags); });
}

}  // namespace pumice::cli
