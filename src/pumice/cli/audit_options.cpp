#include "pumice/cli/audit_options.h"

#include "pumice/cli/command.h"
#include "pumice/cli/noise_options.h"
#include "pumice/core/memory.h"
#include "pumice/forgetting/forgetting_method.h"

namespace pumice::cli {
namespace {

void add_model_options(CLI::App& command, AuditFlags& flags) {
  const char* group = "Models";
  command
      .add_option("--model", flags.model, "The model to judge (.safetensors or TorchScript .pt)")
      ->type_name("FILE")
      ->required()
      ->group(group);
  command.add_option("--original", flags.original, "The model before forgetting")
      ->type_name("FILE")
      ->required()
      ->group(group);
  command
      .add_option(
          "--reference", flags.references,
          "Models retrained without the cohort: files (two or more for verdicts), 'retrain' "
          "to train them now, or 'none' (default)")
      ->type_name("FILE...")
      ->group(group);
  command
      .add_option("--references", flags.reference_count, "How many 'retrain' trains (default: 3)")
      ->type_name("K")
      ->check(CLI::Range(1, 100))
      ->group(group);
  command
      .add_option("--init", flags.init,
                  "The weights that training started from (NAME.start.safetensors)")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--cohort", flags.cohort, "Who was to be forgotten: one id a line")
      ->type_name("FILE")
      ->required()
      ->group(group);
}

std::string group_list() {
  std::string list = "Only these readouts, separated by commas (default: all that are possible):";
  for (const AuditGroup& group : audit_groups()) {
    list += "\n" + group.name + ": " + group.description;
  }
  return list;
}

void add_readout_options(CLI::App& command, AuditFlags& flags) {
  const char* group = "Readouts";
  command.add_option("--only", flags.only, group_list())
      ->type_name("NAMES")
      ->delimiter(',')
      ->group(group);
  command
      .add_option("--relearn-epochs", flags.audit.relearn.max_epochs, "Relearning: at most so many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  command.add_option("--relearn-rate", flags.audit.relearn.rate, "Relearning: learning rate")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  command
      .add_option("--queries", flags.audit.joint_queries,
                  "Cohort queries of the joint black-box bound")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  command
      .add_option("--answers", flags.answers,
                  "What the interface answers, for black-box bounds: logits (default) or softmax")
      ->check(CLI::IsMember({"logits", "softmax"}))
      ->group(group);
  command
      .add_option("--floor", flags.audit.floor,
                  "Rounding of the answers, in their unit, for black-box bounds")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  command
      .add_option("--adversarial-starts", flags.audit.adversarial_starts,
                  "Cohort examples that the adversarial query is searched from")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  command
      .add_option("--shadows", flags.shadows,
                  "Train K models with and K without the cohort, scrub the former, and attack with "
                  "them (U-LiRA, KLOM)")
      ->type_name("K")
      ->check(CLI::Range(3, 1000))
      ->group(group);
  command.add_option("--shadow-method", flags.shadow_method, "How shadow models forget")
      ->capture_default_str()
      ->type_name("NAME")
      ->group(group);
}

void add_noise_options(CLI::App& command, AuditFlags& flags) {
  const char* group = "Noise";
  command
      .add_option("--distribution", flags.distribution,
                  "Mean and variance of the model, as pumice forget --distribution wrote them")
      ->type_name("FILE")
      ->group(group);
  add_noise_shape_options(
      command, flags.noise, flags.noise_shape,
      "Scale of the noise in the model; original and references get the same for their "
      "bounds. 0: none, the bounds are infinite",
      group);
}

void add_run_options(CLI::App& command, AuditFlags& flags) {
  const char* group = "Run";
  command.add_option("--record", flags.record, "The audit as JSON")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--key", flags.key,
                  "Key of the cohort's digest in the record (default: RECORD.key, made if missing)")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--memory", flags.memory,
                  "What a computation may take, such as 2G (default: half of what is free)")
      ->type_name("BYTES")
      ->group(group);
  command.add_option("--threads", flags.threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  command.add_flag("--explain", flags.explain, "Say below the table what each number means")
      ->group(group);
  command.add_flag("--force", flags.force, "Overwrite the record")->group(group);
  command.add_flag("--quiet", flags.quiet, "No progress")->group(group);
  command.add_flag("--json", flags.json, "Print the record as JSON")->group(group);
}

void check_references(const AuditFlags& flags) {
  for (const std::string& word : {std::string("retrain"), std::string("none")}) {
    const auto count = std::count(flags.references.begin(), flags.references.end(), word);
    if (count > 0 && flags.references.size() > 1) {
      throw UsageError(text("--reference: '", word, "' and something else, must stand alone"));
    }
  }
  if (flags.reference_count && !flags.retrain()) {
    throw UsageError("--references: means nothing without --reference retrain");
  }
  if (flags.retrain() && flags.init.empty()) {
    throw UsageError("--init: not given, --reference retrain trains from it");
  }
}

}  // namespace

void add_audit_options(CLI::App& command, AuditFlags& flags) {
  add_model_options(command, flags);
  add_data_options(command, flags.data);
  add_normalization_options(command, flags.data);
  add_readout_options(command, flags);
  add_noise_options(command, flags);
  add_run_options(command, flags);
}

void check_audit_flags(const CLI::App& command, AuditFlags& flags) {
  refuse_empty_values(command, {"--model", "--original", "--init", "--cohort", "--distribution",
                                "--record", "--key", "--data", "--shadow-method"});
  if (flags.references.empty()) flags.references = {"none"};
  check_references(flags);
  if (flags.shadows && flags.init.empty()) {
    throw UsageError("--init: not given, shadow models are trained from it");
  }
  if (!flags.shadows && command.get_option("--shadow-method")->count() > 0) {
    throw UsageError("--shadow-method: means nothing without --shadows");
  }
  if (!flags.key.empty() && flags.record.empty()) {
    throw UsageError("--key: means nothing without --record");
  }
  if (!flags.distribution.empty() && flags.noise.scale == 0) {
    throw UsageError(
        "--noise: not given, the bounds need the scale that --distribution was made with");
  }
  try {
    check_groups(flags.only, "only");
    check(flags.noise);
    method_named(flags.shadow_method);
    if (flags.memory) flags.audit.memory = parse_bytes(*flags.memory);
    if (flags.noise_shape) flags.noise.shape = noise_shape_named(*flags.noise_shape);
  } catch (const Error& error) {
    throw UsageError(text("--", error.what()));
  }
  flags.audit.groups = flags.only;
  if (flags.answers == "softmax") flags.audit.answers = Answers::softmax;
}

}  // namespace pumice::cli
