#include "pumice/cli/train_options.h"

#include "pumice/cli/command.h"

namespace pumice::cli {
namespace {

void add_start_options(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--out", flags.out, "Where the weights go (.safetensors; .pt for TorchScript)")
      ->type_name("FILE")
      ->required();
  command
      .add_option(
          "--init", flags.init,
          "Body to start from (its head is replaced), a NAME.start file (taken as it is, with "
          "its data and recipe), or a TorchScript model")
      ->type_name("FILE");
  command.add_option("--architecture", flags.architecture, "Without --init: allcnn, resnet18, mlp")
      ->capture_default_str();
  command.add_option("--width", flags.width, "Without --init: multiplies the number of channels")
      ->capture_default_str()
      ->type_name("X");
  command
      .add_option("--head", flags.head,
                  "auto, fresh or keep (auto: keep for start files and TorchScript)")
      ->check(CLI::IsMember({"auto", "fresh", "keep"}));
  for (const char* name : {"--architecture", "--width"}) {
    command.get_option("--init")->excludes(command.get_option(name));
  }
}

void add_recipe_options(CLI::App& command, TrainFlags& flags) {
  const char* group = "Recipe";
  command
      .add_option("--preset", flags.preset,
                  "finetune (default with --init) or pretrain (default without)")
      ->check(CLI::IsMember({"finetune", "pretrain"}))
      ->group(group);
  command
      .add_option("--epochs", flags.epochs, "At most this many epochs (finetune 100, pretrain 30)")
      ->type_name("N")
      ->group(group);
  command.add_option("--batch", flags.batch_size, "Examples in a batch (128)")
      ->type_name("N")
      ->group(group);
  command.add_option("--rate", flags.rate, "Learning rate (finetune 0.01, pretrain 0.1)")
      ->type_name("X")
      ->group(group);
  command.add_option("--momentum", flags.momentum, "Momentum (0.9)")->type_name("X")->group(group);
  command
      .add_option("--weight-decay", flags.weight_decay,
                  "L2 penalty on the distance to the decay centre (finetune 0.1, pretrain 0.0005)")
      ->type_name("X")
      ->group(group);
  command.add_option("--decay-centre", flags.decay_centre, "start (finetune) or zero (pretrain)")
      ->check(CLI::IsMember({"start", "zero"}))
      ->group(group);
  command.add_option("--schedule", flags.schedule, "constant, or one-cycle for short pre-training")
      ->check(CLI::IsMember({"constant", "one-cycle"}))
      ->group(group);
  command
      .add_option("--batch-norm", flags.batch_norm,
                  "Statistics: frozen (finetune) or trained (pretrain)")
      ->check(CLI::IsMember({"frozen", "trained"}))
      ->group(group);
  command
      .add_option("--augment", flags.augment,
                  "Random crop and flip: on (pretrain) or off (finetune)")
      ->check(CLI::IsMember({"on", "off"}))
      ->group(group);
  CLI::Option* after =
      command
          .add_option("--after-zero-error", flags.after_zero_error,
                      "Stop N epochs after the first without training error (finetune 5)")
          ->type_name("N")
          ->group(group);
  command.add_flag("--no-early-stop", flags.no_early_stop, "Run all epochs (pretrain)")
      ->excludes(after)
      ->group(group);
}

void add_cohort_options(CLI::App& command, TrainFlags& flags) {
  const char* group = "Leaving examples out";
  CLI::Option* exclude =
      command.add_option("--exclude", flags.exclude, "Do not train on the ids in this file")
          ->type_name("FILE")
          ->group(group);
  command
      .add_option("--forget-class", flags.forget_class, "Do not train on examples of this class …")
      ->type_name("CLASS")
      ->excludes(exclude)
      ->group(group);
  command
      .add_option("--forget-count", flags.forget_count,
                  "… this many, drawn as 'data make cohort' does")
      ->type_name("N")
      ->excludes(exclude)
      ->group(group);
  command
      .add_flag("--replace", flags.replace, "Fill their places with repeats of retained examples")
      ->group(group);
}

void add_run_options(CLI::App& command, TrainFlags& flags) {
  const char* group = "Run";
  command.add_option("--seed", flags.seed, "Seed of every random stream (1)")
      ->type_name("N")
      ->group(group);
  command
      .add_option("--order-seed", flags.order_seed, "Another seed for the order of examples alone")
      ->type_name("N")
      ->group(group);
  command
      .add_option("--data-seed", flags.data_seed,
                  "Another seed for the selection of examples alone")
      ->type_name("N")
      ->group(group);
  command.add_option("--threads", flags.threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  command.add_flag("--resume", flags.resume, "Continue an interrupted run")->group(group);
  command
      .add_flag("--force", flags.force, "Overwrite the result of an earlier run, finished or not")
      ->excludes(command.get_option("--resume"))
      ->group(group);
  command
      .add_flag("--keep-epochs", flags.keep_epochs, "Keep every epoch's weights in NAME.epochs/")
      ->group(group);
  command.add_flag("--quiet", flags.quiet, "No progress")->group(group);
  command.add_flag("--json", flags.json, "Summary as JSON")->group(group);
}

}  // namespace

void add_train_options(CLI::App& command, TrainFlags& flags) {
  add_start_options(command, flags);
  add_data_options(command, flags.data);
  add_normalization_options(command, flags.data);
  add_recipe_options(command, flags);
  add_cohort_options(command, flags);
  add_run_options(command, flags);
}

}  // namespace pumice::cli
