#include "pumice/cli/forget_options.h"

#include <set>

#include "pumice/cli/command.h"
#include "pumice/cli/noise_options.h"
#include "pumice/core/memory.h"

namespace pumice::cli {
namespace {

void add_request_options(CLI::App& command, ForgetFlags& flags) {
  const char* group = "Request";
  command.add_option("--model", flags.model, "The trained model (.safetensors or TorchScript .pt)")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--index", flags.index,
                  "In place of --model: the index of the model (pumice index build)")
      ->type_name("DIR")
      ->group(group);
  command
      .add_option("--init", flags.init,
                  "The weights its training started from (NAME.start.safetensors)")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--cohort", flags.cohort, "Who has to go: one id a line")
      ->type_name("FILE")
      ->required()
      ->group(group);
  command
      .add_option("--out", flags.out,
                  "The scrubbed model, in the format of --model; a folder for several methods "
                  "(required unless --dry-run)")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--record", flags.record, "What was done, as JSON")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--key", flags.key,
                  "Key of the cohort's digest in the record (default: RECORD.key, made if missing)")
      ->type_name("FILE")
      ->group(group);
  command.add_flag("--record-ids", flags.record_ids, "Write the cohort's ids into the record")
      ->group(group);
  command
      .add_option("--distribution", flags.distribution,
                  "Also write mean and variance, for audits; private, never to be released")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--reference", flags.references,
                  "Retrained models, to compare the shift with the true one")
      ->type_name("FILE...")
      ->group(group);
}

std::string method_list() {
  std::string list = "How to forget (repeat for several):";
  for (const MethodEntry& entry : forgetting_methods()) {
    list += "\n" + entry.name + ": " + entry.description;
  }
  return list;
}

void add_method_options(CLI::App& command, ForgetFlags& flags) {
  const char* group = "Method";
  command.add_option("--method", flags.methods, method_list() + "\n(default: consistent)")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option("--weight-decay", flags.weight_decay,
                  "The decay of the training (default: what the model says)")
      ->type_name("L")
      ->group(group);
  command
      .add_option("--decay-centre", flags.decay_centre,
                  "Where decay pulled to, if there is no --init: zero, or self (the model itself)")
      ->check(CLI::IsMember({"zero", "self"}))
      ->group(group);
  command.add_option("--loss", flags.loss, "cross-entropy (default) or squared")
      ->check(CLI::IsMember({"cross-entropy", "squared"}))
      ->group(group);
  command
      .add_option("--curvature", flags.curvature,
                  "identity or softmax (default: identity, for newton softmax)")
      ->check(CLI::IsMember({"identity", "softmax"}))
      ->group(group);
  command
      .add_option("--ridge", flags.method.ridge,
                  "Another weight decay for the solve (default: that of the training)")
      ->type_name("L")
      ->group(group);
  command
      .add_option("--scale", flags.method.scale,
                  "Length of the shift as a multiple of the solution (default: the method's rule)")
      ->type_name("S")
      ->group(group);
  command
      .add_option("--validation", flags.validation,
                  "Unseen examples, by which consistent chooses its scale (default: the validation "
                  "part of the data, if there is one)")
      ->type_name("SPEC")
      ->group(group);
  command.add_option("--linearize-at", flags.linearize_at, "ntk: weights (default) or start")
      ->check(CLI::IsMember({"weights", "start"}))
      ->group(group);
  command.add_flag("--no-trapezium", flags.no_trapezium, "ntk: without the trapezium trick")
      ->group(group);
  command
      .add_option("--solver", flags.solver,
                  "dense: the kernel, factorised; matrix-free: conjugate gradients on the weights; "
                  "auto: what the forecast says is faster (default)")
      ->check(CLI::IsMember({"auto", "dense", "matrix-free"}))
      ->group(group);
  command
      .add_option("--tolerance", flags.tolerance, "matrix-free: bound of the relative error (1e-3)")
      ->type_name("T")
      ->group(group);
  command
      .add_option("--max-iterations", flags.max_iterations,
                  "matrix-free: iterations after which a solve has failed (500)")
      ->type_name("N")
      ->group(group);
  command
      .add_option("--preconditioner", flags.preconditioner,
                  "matrix-free: examples that the preconditioner is made of, 0 for none (default: "
                  "what the estimate of iterations says)")
      ->type_name("N")
      ->group(group);
  command.add_option("--epochs", flags.method.finetune_epochs, "finetune: epochs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  command.add_option("--rate", flags.method.finetune_rate, "finetune: learning rate")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  command
      .add_flag("--replace", flags.method.replace,
                "retrain: fill the cohort's places with repeats of retained examples")
      ->group(group);
}

void add_noise_options(CLI::App& command, ForgetFlags& flags) {
  const char* group = "Noise";
  add_noise_shape_options(command, flags.noise, flags.noise_shape,
                          "Scale of the noise after the shift, 0 for none (then no bound holds)",
                          group);
  command
      .add_option("--noise-seed", flags.noise.seed,
                  "Repeatable noise, for experiments: the release is not private then")
      ->type_name("N")
      ->group(group);
}

void add_run_options(CLI::App& command, ForgetFlags& flags) {
  const char* group = "Run";
  command
      .add_option("--memory", flags.memory,
                  "What a solve may take, such as 2G (default: half of what is free)")
      ->type_name("BYTES")
      ->group(group);
  command
      .add_option("--threads", flags.threads,
                  "Cores to use (default: all, or this process's share of them)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  command
      .add_option("--checkpoint", flags.checkpoint,
                  "Where a long matrix-free solve keeps its iterate, to go on from after a crash; "
                  "tells of the cohort (default: OUT.checkpoint, removed at the end)")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--checkpoint-every", flags.checkpoint_every,
                  "Seconds between two writes of it, 0 for each iteration")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6))
      ->group(group);
  command
      .add_option("--heartbeat-limit", flags.heartbeat_limit,
                  "Several processes: seconds of silence after which one is lost")
      ->capture_default_str()
      ->check(CLI::Range(0.5, 50.0))
      ->group(group);
  command
      .add_option("--join-limit", flags.join_limit,
                  "Several processes: seconds to wait for all of them to start")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e5))
      ->group(group);
  command
      .add_flag("--dry-run", flags.dry_run,
                "Print time, memory and solver of each method as forecast, and write nothing")
      ->group(group);
  command
      .add_flag("--accept-unconverged", flags.accept_unconverged,
                "Write the model even if the solve did not converge")
      ->group(group);
  command
      .add_flag("--force", flags.force,
                "Go on where the examination says no, and overwrite what is there")
      ->group(group);
  command.add_flag("--quiet", flags.quiet, "No progress")->group(group);
  command.add_flag("--json", flags.json, "Print the record as JSON")->group(group);
}

}  // namespace

void add_forget_options(CLI::App& command, ForgetFlags& flags) {
  add_request_options(command, flags);
  add_data_options(command, flags.data);
  add_normalization_options(command, flags.data);
  add_method_options(command, flags);
  add_noise_options(command, flags);
  add_run_options(command, flags);
}

namespace {

// What an index has fixed once for all requests.
void refuse_options_of_the_index(const CLI::App& command) {
  for (const char* name :
       {"--method",  "--weight-decay", "--decay-centre",   "--loss",           "--curvature",
        "--ridge",   "--scale",        "--validation",     "--linearize-at",   "--no-trapezium",
        "--solver",  "--tolerance",    "--max-iterations", "--preconditioner", "--checkpoint",
        "--dry-run", "--epochs",       "--rate",           "--replace",        "--key"}) {
    if (command.get_option(name)->count() > 0) {
      throw UsageError(text(name, ": means nothing with --index, which has fixed it"));
    }
  }
}

}  // namespace

void check_forget_flags(const CLI::App& command, ForgetFlags& flags) {
  refuse_empty_values(command,
                      {"--model", "--index", "--init", "--cohort", "--out", "--record", "--key",
                       "--distribution", "--data", "--validation", "--checkpoint"});
  if (flags.index.empty() && flags.model.empty()) {
    throw UsageError("--model: not given, must be (or --index)");
  }
  if (!flags.index.empty()) refuse_options_of_the_index(command);
  if (flags.out.empty() && !flags.dry_run) throw UsageError("--out is required");
  if (flags.methods.empty()) flags.methods = {"consistent"};
  if (std::set<std::string>(flags.methods.begin(), flags.methods.end()).size() !=
      flags.methods.size()) {
    throw UsageError("--method: one is named twice");
  }
  if (flags.method.scale && !(*flags.method.scale > 0)) {
    throw UsageError(text("--scale: ", *flags.method.scale, ", must be > 0"));
  }
  if (flags.method.ridge && !(*flags.method.ridge > 0)) {
    throw UsageError(text("--ridge: ", *flags.method.ridge, ", must be > 0"));
  }
  if (flags.tolerance && !(*flags.tolerance > 0 && *flags.tolerance < 1)) {
    throw UsageError(text("--tolerance: ", *flags.tolerance, ", must be in (0, 1)"));
  }
  if (flags.max_iterations && *flags.max_iterations < 1) {
    throw UsageError(text("--max-iterations: ", *flags.max_iterations, ", must be >= 1"));
  }
  if (flags.preconditioner && *flags.preconditioner < 0) {
    throw UsageError(text("--preconditioner: ", *flags.preconditioner, ", must be >= 0"));
  }
  if (!flags.init.empty() && flags.decay_centre) {
    throw UsageError("--decay-centre: means nothing with --init, which says where decay pulls to");
  }
  if (flags.validation && flags.method.scale) {
    throw UsageError("--validation: means nothing with --scale, which fixes what it would find");
  }
  if (!flags.key.empty() && flags.record.empty()) {
    throw UsageError("--key: means nothing without --record");
  }
  try {
    for (const std::string& name : flags.methods) {
      const MethodEntry& entry = method_named(name);
      if (entry.needs_noise && flags.noise.scale == 0) {
        throw UsageError(text("--noise: not given, method '", name, "' is noise alone"));
      }
      if (entry.needs_start && flags.init.empty()) {
        throw UsageError(text("--init: not given, method '", name, "' trains from it"));
      }
    }
    check(flags.noise);
    if (flags.memory) parse_bytes(*flags.memory);
    if (flags.noise_shape) flags.noise.shape = noise_shape_named(*flags.noise_shape);
    if (flags.curvature) flags.method.curvature = curvature_named(*flags.curvature);
    if (flags.solver) flags.method.solver = solver_named(*flags.solver);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(text("--", error.what()));
  }
  if (flags.linearize_at == "start") flags.method.linearize_at = LinearizeAt::start;
  flags.method.trapezium = !flags.no_trapezium;
}

}  // namespace pumice::cli
