// pumice train: from a body (or from nothing) and data to weights.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "pumice/cli/command.h"
#include "pumice/cli/train_options.h"
#include "pumice/core/progress.h"
#include "pumice/data/split.h"
#include "pumice/linalg/threads.h"
#include "pumice/model/start.h"
#include "pumice/model/torchscript_model.h"
#include "pumice/model/training_run.h"

namespace pumice::cli {
namespace {

using Json = nlohmann::json;

template <typename Value>
void take_if_given(const std::optional<Value>& given, Value& target) {
  if (given) target = *given;
}

// What an --init file brings along. A start file (written by an earlier train) stands for that
// training: its head, data and recipe are kept, so that "train --init w.start.safetensors --exclude
// cohort.txt" is the same training without the cohort.
struct Origin {
  std::optional<Checkpoint> checkpoint;
  bool is_start = false;
};

Origin open_origin(const TrainFlags& flags) {
  Origin origin;
  if (flags.init.empty()) return origin;
  origin.checkpoint = open_checkpoint(flags.init);
  const Metadata& metadata = origin.checkpoint->metadata;
  origin.is_start = metadata.contains("start") && metadata.at("start") == "true";
  return origin;
}

TrainingOptions training_options(const TrainFlags& flags, const Origin& origin) {
  TrainingOptions options;
  if (origin.is_start && origin.checkpoint->metadata.contains("recipe") && flags.preset.empty()) {
    const Json recipe = Json::parse(origin.checkpoint->metadata.at("recipe"), nullptr, false);
    options = training_options_from_json(recipe);
  } else {
    const std::string preset = !flags.preset.empty() ? flags.preset
                               : flags.init.empty()  ? "pretrain"
                                                     : "finetune";
    options = preset == "pretrain" ? pretraining_recipe() : finetuning_recipe();
  }
  take_if_given(flags.epochs, options.epochs);
  take_if_given(flags.batch_size, options.batch_size);
  take_if_given(flags.rate, options.rate);
  take_if_given(flags.momentum, options.momentum);
  take_if_given(flags.weight_decay, options.weight_decay);
  if (flags.after_zero_error) options.epochs_after_zero_error = flags.after_zero_error;
  if (flags.no_early_stop) options.epochs_after_zero_error.reset();
  if (flags.decay_centre) {
    options.decay_centre = *flags.decay_centre == "start" ? DecayCentre::start : DecayCentre::zero;
  }
  if (flags.schedule) {
    options.schedule = *flags.schedule == "constant" ? Schedule::constant : Schedule::one_cycle;
  }
  if (flags.batch_norm) options.update_statistics = *flags.batch_norm == "trained";
  if (flags.augment) options.augment = *flags.augment == "on";
  if (flags.seed) options.seed = options.order_seed = *flags.seed;
  take_if_given(flags.order_seed, options.order_seed);
  try {
    check(options);
  } catch (const Error& error) {
    throw UsageError(text("--", error.what()));
  }
  return options;
}

DataRequest data_request(const CLI::App& command, const TrainFlags& flags, const Origin& origin) {
  std::optional<DataRequest> stored;
  if (origin.is_start) stored = stored_data_request(origin.checkpoint->metadata);
  DataRequest request = stored ? inherit_data_options(command, flags.data, *stored) : flags.data;
  if (!origin.is_start) take_if_given(flags.seed, request.selection.seed);
  take_if_given(flags.data_seed, request.selection.seed);
  return request;
}

// The start: the checkpoint as it is, or its body with a fresh head, or a fresh network.
bool keeps_head(const TrainFlags& flags, const Origin& origin) {
  if (!origin.checkpoint) return false;
  const bool zoo = dynamic_cast<const Network*>(origin.checkpoint->model.get()) != nullptr;
  return flags.head == "keep" || (flags.head == "auto" && (origin.is_start || !zoo));
}

Start make_start(const TrainFlags& flags, const Origin& origin, const Dataset& train,
                 std::uint64_t seed) {
  if (!origin.checkpoint) return fresh_start(flags.architecture, flags.width, train, seed);
  if (keeps_head(flags, origin)) return {origin.checkpoint->model, origin.checkpoint->weights};
  try {
    return with_fresh_head(*origin.checkpoint, train.classes.size(), seed);
  } catch (const Error& error) {
    throw UsageError(text("--", error.what()));
  }
}

std::vector<std::int64_t> excluded_positions(const TrainFlags& flags, const Selection& selection,
                                             std::uint64_t seed) {
  if (flags.exclude.empty() && flags.forget_class.empty()) return {};
  const std::vector<std::string> ids =
      flags.exclude.empty()
          ? draw_cohort(selection.train, flags.forget_class, flags.forget_count.value_or(0), seed)
          : read_ids(flags.exclude);
  return make_split(selection.train, selection.test, ids).cohort;
}

void print_row(const char* name, const Evaluation& evaluation) {
  if (evaluation.count == 0) return;
  std::printf("  %-12s%10lld%10.2f %%%10.4f\n", name, static_cast<long long>(evaluation.count),
              100 * evaluation.error, evaluation.loss);
}

Json row_json(const Evaluation& evaluation) {
  return {{"examples", evaluation.count}, {"error", evaluation.error}, {"loss", evaluation.loss}};
}

void run_train(const CLI::App& command, const TrainFlags& flags) {
  refuse_empty_values(command, {"--init", "--exclude", "--forget-class", "--data"});
  if (flags.forget_class.empty() != !flags.forget_count) {
    throw UsageError(
        "--forget-class and --forget-count: each needs the other, which class and how many");
  }
  if (flags.replace && flags.exclude.empty() && flags.forget_class.empty()) {
    throw UsageError("--replace: needs --exclude or --forget-class, there is nothing to replace");
  }
  set_threads(flags.threads.value_or(available_cores()));
  const Origin origin = open_origin(flags);
  const TrainingOptions options = training_options(flags, origin);
  const DataRequest request = data_request(command, flags, origin);
  Selection selection = load(request);
  const Normalization normalization =
      normalization_for(origin.checkpoint ? origin.checkpoint->metadata : Metadata{},
                        selection.train, request.normalization);
  Start start = make_start(flags, origin, selection.train, options.seed);
  const std::string head = keeps_head(flags, origin) ? "kept" : "fresh";
  const std::string extension = file_extension(*start.model);
  if (std::filesystem::path(flags.out).extension() != extension) {
    throw UsageError(text("--out: '", flags.out, "', must end in ", extension,
                          extension == ".pt" ? ", since --init is a TorchScript model" : ""));
  }

  const TrainingSet set{selection.train, excluded_positions(flags, selection, options.seed),
                        flags.replace};
  const bool quiet = flags.quiet || flags.json;
  TrainingRunOptions run{.out = flags.out,
                         .training = options,
                         .metadata = training_metadata(request, selection.train, normalization,
                                                       set.excluded.size(), flags.replace),
                         .resume = flags.resume,
                         .force = flags.force,
                         .keep_epochs = flags.keep_epochs,
                         .progress = quiet ? ProgressMode::quiet : ProgressMode::automatic};
  const TrainingRunSummary summary =
      run_training(*start.model, start.weights, set, normalization, run);
  if (summary.status == TrainingRunStatus::interrupted) {
    fail("interrupted after epoch ", summary.history.size(), "; the same command with --resume",
         flags.force ? " in place of --force" : "", " continues");
  }
  if (summary.status == TrainingRunStatus::already_finished) {
    std::printf("%s: this run is finished, nothing to resume\n", flags.out.c_str());
    return;
  }

  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < selection.train.size(); ++i) {
    if (!std::binary_search(set.excluded.begin(), set.excluded.end(), i)) kept.push_back(i);
  }
  const auto judge = [&](const Dataset& dataset) {
    return dataset.size() ? evaluate(*start.model, start.weights, dataset, normalization)
                          : Evaluation{};
  };
  const Evaluation trained = judge(subset(selection.train, kept));
  const Evaluation excluded =
      set.excluded.empty() ? Evaluation{} : judge(subset(selection.train, set.excluded));
  const Evaluation validation = judge(selection.validation);
  const Evaluation tested = judge(selection.test);
  const double displacement =
      (start.weights.flat - open_checkpoint(start_path(flags.out)).weights.flat)
          .norm()
          .item<double>();

  if (flags.json) {
    Json json{{"out", flags.out},
              {"weights", start.weights.layout->total()},
              {"epochs", summary.history.size()},
              {"resumed_after", summary.resumed_after},
              {"seconds", summary.seconds},
              {"displacement", displacement},
              {"head", head},
              {"recipe", to_json(options)},
              {"training", row_json(trained)}};
    if (excluded.count) json["excluded"] = row_json(excluded);
    if (validation.count) json["validation"] = row_json(validation);
    if (tested.count) json["test"] = row_json(tested);
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  std::printf("%s: %lld weights, %s head, %zu epochs in %s, |w - start| = %.4g\n",
              flags.out.c_str(), static_cast<long long>(start.weights.layout->total()),
              head.c_str(), summary.history.size(), duration_text(summary.seconds).c_str(),
              displacement);
  std::printf("  %-12s%10s%12s%10s\n", "", "examples", "error", "loss");
  print_row("training", trained);
  print_row("excluded", excluded);
  print_row("validation", validation);
  print_row("test", tested);
  std::printf(
      "Also written: %s, %s%s\n", start_path(flags.out).c_str(), log_path(flags.out).c_str(),
      flags.keep_epochs ? text(", ", epoch_path(flags.out, 1).parent_path().string(), "/").c_str()
                        : "");
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train or fine-tune a network");
  const auto flags = std::make_shared<TrainFlags>();
  add_train_options(*command, *flags);
  command->footer(
      "Example: fine-tune the shipped body on 500 images, then train the same without 25 of them\n"
      "  pumice train --init weights/fashion-mnist-allcnn-w0.25.safetensors --classes 0-4 "
      "--per-class 100 --batch 32 --rate 0.003 --weight-decay 0.02 --out w.safetensors\n"
      "  pumice train --init w.start.safetensors --forget-class 0 --forget-count 25 --out "
      "r.safetensors");
  command->callback([command, flags] { run_train(*command, *flags); });
}

}  // namespace pumice::cli
