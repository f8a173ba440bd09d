#include "pumice/cli/forget_request.h"

#include "pumice/cli/command.h"
#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/data/data_source.h"
#include "pumice/model/torchscript_model.h"

namespace pumice::cli {
namespace {

namespace files = std::filesystem;

void check_outputs(const ForgetFlags& flags, const Checkpoint& checkpoint) {
  const std::string extension = file_extension(*checkpoint.model);
  if (!several_methods(flags) && files::path(flags.out).extension() != extension) {
    throw UsageError(text("--out: '", flags.out, "', must end in ", extension, " as --model does"));
  }
  for (const std::string* name : {&flags.out, &flags.distribution}) {
    if (name->empty() || !several_methods(flags)) continue;
    if (files::exists(*name) && !files::is_directory(*name)) {
      throw UsageError(text("'", *name, "': is a file, must be a folder for several methods"));
    }
  }
  std::vector<files::path> targets;
  for (const std::string& method : flags.methods) {
    targets.push_back(out_path(flags, flags.out, method, extension));
    if (!flags.distribution.empty()) {
      targets.push_back(out_path(flags, flags.distribution, method, ".safetensors"));
    }
  }
  if (!flags.record.empty()) targets.emplace_back(flags.record);
  for (const files::path& target : targets) {
    if (files::exists(target) && !flags.force) {
      fail(target.string(), ": exists already, must not be overwritten without --force");
    }
    for (const std::string& source : {flags.model, flags.init, flags.cohort}) {
      std::error_code missing;  // a source that is not there is told when it is opened
      if (!source.empty() && files::equivalent(target, source, missing)) {
        throw UsageError(
            text("'", target.string(), "': is an input of this command, must be another file"));
      }
    }
  }
}

}  // namespace

bool several_methods(const ForgetFlags& flags) {
  return flags.methods.size() > 1;
}

files::path out_path(const ForgetFlags& flags, const std::string& name, const std::string& method,
                     const std::string& extension) {
  return several_methods(flags) ? files::path(name) / (method + extension) : files::path(name);
}

ForgetRequest open_request(const CLI::App& command, const ForgetFlags& flags, bool writes) {
  ForgetRequest request{.loaded = load_model(flags.model, command, flags.data),
                        .start = {},
                        .references = {},
                        .cohort_ids = read_ids(flags.cohort),
                        .split = {},
                        .recipe = {},
                        .validation = {}};
  const Checkpoint& checkpoint = request.loaded.checkpoint;
  if (writes && !flags.dry_run) check_outputs(flags, checkpoint);
  if (!flags.init.empty()) {
    request.start = open_checkpoint(flags.init);
    check_same_network(flags.init, *request.start, checkpoint.weights);
  }
  for (const std::string& file : flags.references) {
    const Checkpoint reference = open_checkpoint(file);
    check_same_network(file, reference, checkpoint.weights);
    request.references.push_back(reference.weights);
  }
  const Selection& selection = request.loaded.selection;
  request.split = make_split(selection.train, selection.test, request.cohort_ids);
  check_data_digest(checkpoint.metadata, selection.train);
  request.recipe = stored_recipe(checkpoint.metadata);
  request.validation = selection.validation;
  if (flags.validation) {
    DataRequest data = request.loaded.request;
    data.spec = *flags.validation;
    data.test_spec.clear();
    data.selection.per_class.reset();
    data.selection.validation_per_class = 0;
    request.validation = load(data).train;
    make_split(selection.train, request.validation, request.cohort_ids);  // no id in both
  }
  return request;
}

bool pulls_to_zero(const ForgetFlags& flags, const ForgetRequest& request) {
  if (flags.decay_centre) return *flags.decay_centre == "zero";
  return request.recipe && request.recipe->decay_centre == DecayCentre::zero;
}

ForgettingTask make_task(const ForgetFlags& flags, const ForgetRequest& request) {
  const Checkpoint& checkpoint = request.loaded.checkpoint;
  const bool to_zero = pulls_to_zero(flags, request);
  if (!request.start && !flags.decay_centre && !to_zero) {
    throw UsageError(
        "--init: not given; where weight decay pulled to must be said: --init FILE, or "
        "--decay-centre zero or self");
  }
  ForgettingTask task{.model = *checkpoint.model,
                      .weights = checkpoint.weights,
                      .centre = to_zero         ? at::zeros_like(checkpoint.weights.flat)
                                : request.start ? request.start->weights.flat
                                                : checkpoint.weights.flat,
                      .start = {},
                      .train = request.loaded.selection.train,
                      .split = request.split,
                      .normalization = request.loaded.normalization,
                      .weight_decay = 0,
                      .recipe = request.recipe.value_or(finetuning_recipe())};
  if (request.start) task.start = request.start->weights.flat;
  if (request.validation.size() > 0) task.validation = &request.validation;
  if (flags.weight_decay) {
    task.weight_decay = *flags.weight_decay;
  } else if (request.recipe) {
    task.weight_decay = request.recipe->weight_decay;
  }
  for (const std::string& name : flags.methods) {
    if (!method_named(name).needs_ridge || flags.method.ridge || task.weight_decay > 0) continue;
    if (!flags.weight_decay && !request.recipe) {
      throw UsageError(text("--weight-decay: not given and not known from the model, method '",
                            name, "' needs it"));
    }
    throw UsageError(text("--weight-decay: ", task.weight_decay, ", must be > 0 for method '", name,
                          "' (or give --ridge)"));
  }
  if (flags.noise.scale > 0 && request.split.retain.empty()) {
    throw UsageError(
        "--noise: its shape is measured on retained examples, and the cohort is everything");
  }
  if (flags.loss) task.loss = loss_named(*flags.loss);
  if (flags.memory) task.linear.memory = parse_bytes(*flags.memory);
  if (flags.tolerance) task.linear.error_tolerance = *flags.tolerance;
  if (flags.max_iterations) task.linear.max_iterations = *flags.max_iterations;
  task.linear.preconditioner = flags.preconditioner;
  check(task);
  return task;
}

}  // namespace pumice::cli
