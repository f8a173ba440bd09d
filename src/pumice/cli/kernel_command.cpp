// pumice kernel: the neural tangent kernel of a model on chosen examples, for Python or as a
// spectrum.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "pumice/cli/command.h"
#include "pumice/cli/loaded_model.h"
#include "pumice/core/atomic_file.h"
#include "pumice/core/interrupt.h"
#include "pumice/core/memory.h"
#include "pumice/core/progress.h"
#include "pumice/core/revision.h"
#include "pumice/data/npy_array.h"
#include "pumice/data/split.h"
#include "pumice/linalg/spectrum.h"
#include "pumice/linalg/threads.h"
#include "pumice/linearization/linearization.h"
#include "pumice/model/training.h"

namespace pumice::cli {
namespace {

using Json = nlohmann::json;

struct KernelFlags {
  std::string model, out, ids, part = "train";
  std::optional<std::string> against, against_ids, against_part;
  DataRequest data;
  bool spectrum = false;
  std::int64_t leading = 10;
  std::vector<double> ridges;
  std::optional<std::string> memory, contraction;
  std::optional<int> threads;
  bool layers = false, force = false, quiet = false, json = false;

  bool rectangular() const { return against || against_ids || against_part; }
};

void check_flags(const KernelFlags& flags) {
  if (flags.out.empty() && !flags.spectrum) {
    throw UsageError("--out: not given, and no --spectrum either; there is nothing to do");
  }
  if (!flags.out.empty() && !flags.out.ends_with(".npy")) {
    throw UsageError(text("--out: '", flags.out, "', must end in .npy"));
  }
  if (flags.spectrum && flags.rectangular()) {
    throw UsageError("--spectrum: needs a square kernel, leave --against away");
  }
  if (!flags.ridges.empty() && !flags.spectrum) {
    throw UsageError("--ridge: means nothing without --spectrum");
  }
  for (const double ridge : flags.ridges) {
    if (!(ridge > 0)) throw UsageError(text("--ridge: ", ridge, ", must be > 0"));
  }
  try {
    if (flags.memory) parse_bytes(*flags.memory);
    if (flags.contraction) contraction_named(*flags.contraction);
  } catch (const Error& error) {
    throw UsageError(text("--", error.what()));
  }
}

std::filesystem::path description_path(const std::string& out) {
  return std::filesystem::path(out).replace_extension(".json");
}

Dataset chosen(const Selection& selection, const std::string& part, const std::string& ids) {
  const Dataset& whole = part_named(selection, part);
  return ids.empty() ? whole : examples_with_ids(whole, read_ids(ids));
}

// The columns of a rectangular kernel: another data set, another part, or other examples of the
// same.
Dataset columns_of(const KernelFlags& flags, const LoadedModel& loaded) {
  const std::string part = flags.against_part.value_or(flags.part);
  const std::string ids = flags.against_ids.value_or("");
  if (!flags.against) return chosen(loaded.selection, part, ids);
  DataRequest request = loaded.request;
  request.spec = *flags.against;
  request.test_spec.clear();
  return chosen(load(request), part, ids);
}

// N·λ with the weight decay of the training, if the model says it.
std::vector<double> ridges_of(const KernelFlags& flags, const Metadata& metadata,
                              std::int64_t examples) {
  if (!flags.ridges.empty() || !metadata.contains("recipe")) return flags.ridges;
  const Json recipe = Json::parse(metadata.at("recipe"), nullptr, false);
  const double decay = training_options_from_json(recipe).weight_decay;
  if (!(decay > 0)) return {};
  return {decay * static_cast<double>(examples)};
}

Json spectrum_json(const at::Tensor& eigenvalues, const std::vector<double>& ridges,
                   std::int64_t leading) {
  Json values = Json::array();
  for (std::int64_t i = 0; i < std::min(leading, eigenvalues.size(0)); ++i) {
    values.push_back(eigenvalues[i].item<double>());
  }
  Json dimensions = Json::array();
  for (const double ridge : ridges) {
    dimensions.push_back(
        {{"ridge", ridge}, {"effective_dimension", effective_dimension(eigenvalues, ridge)}});
  }
  return {{"leading_eigenvalues", values},
          {"smallest_eigenvalue", eigenvalues[-1].item<double>()},
          {"trace", eigenvalues.sum().item<double>()},
          {"effective_dimensions", dimensions}};
}

void print_spectrum(const Json& spectrum, std::int64_t rows) {
  std::printf("Leading eigenvalues, and the share of the trace up to each:\n");
  double sum = 0;
  int position = 0;
  for (const auto& value : spectrum["leading_eigenvalues"]) {
    sum += value.get<double>();
    std::printf("  %3d  %12.5g  %6.2f %%\n", ++position, value.get<double>(),
                100 * sum / spectrum["trace"].get<double>());
  }
  std::printf("Smallest eigenvalue: %.5g\n", spectrum["smallest_eigenvalue"].get<double>());
  for (const auto& entry : spectrum["effective_dimensions"]) {
    std::printf("Effective dimension, sum of l/(l + ridge), for ridge %g: %.1f of %lld\n",
                entry["ridge"].get<double>(), entry["effective_dimension"].get<double>(),
                static_cast<long long>(rows));
  }
  if (spectrum["effective_dimensions"].empty()) {
    std::printf("No ridge is known from the model; --ridge gives the effective dimension.\n");
  }
}

Kernel compute(const KernelFlags& flags, const Linearization& rows, const Linearization* columns) {
  Progress progress("kernel", 1000,
                    flags.quiet || flags.json ? ProgressMode::quiet : ProgressMode::automatic);
  KernelOptions options;
  if (flags.memory) options.memory = parse_bytes(*flags.memory);
  if (flags.contraction) options.contraction = contraction_named(*flags.contraction);
  options.progress = [&](double share) {
    if (interrupted()) fail("interrupted, nothing was written");
    progress.update(static_cast<std::int64_t>(1000 * share));
  };
  Kernel kernel = columns ? rows.kernel(*columns, options) : rows.kernel(options);
  progress.finish();
  return kernel;
}

// What a reader of the .npy file has to know.
Json description(const KernelFlags& flags, const LoadedModel& loaded, const Dataset& rows,
                 const Dataset& columns, const Kernel& kernel) {
  return {
      {"created_by", text("pumice ", version())},
      {"revision", revision()},
      {"model", digest(*loaded.checkpoint.model, loaded.checkpoint.weights)},
      {"order", "row and column = position of the example in its list of ids * classes + class"},
      {"classes", kernel.theta.size(0) / rows.size()},
      {"class_names", rows.classes.names},
      {"row_ids", rows.ids},
      {"column_ids", flags.rectangular() ? columns.ids : rows.ids},
      {"row_data", digest(rows)},
      {"column_data", digest(flags.rectangular() ? columns : rows)},
      {"summary", to_json(kernel.summary)}};
}

void run_kernel(const CLI::App& command, const KernelFlags& flags) {
  check_flags(flags);
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.force) {
    fail(flags.out, ": exists already, must not be overwritten without --force");
  }
  set_threads(flags.threads.value_or(available_cores()));
  const LoadedModel loaded = load_model(flags.model, command, flags.data);
  const Dataset rows = chosen(loaded.selection, flags.part, flags.ids);
  const Model& model = *loaded.checkpoint.model;
  const Weights& weights = loaded.checkpoint.weights;
  const Linearization left(model, weights, network_inputs(rows.images, loaded.normalization));
  Dataset columns;
  std::optional<Linearization> right;
  if (flags.rectangular()) {
    columns = columns_of(flags, loaded);
    right.emplace(model, weights, network_inputs(columns.images, loaded.normalization));
  }
  const Kernel kernel = compute(flags, left, right ? &*right : nullptr);

  Json spectrum;
  if (flags.spectrum) {
    spectrum =
        spectrum_json(eigenvalues_descending(kernel.theta),
                      ridges_of(flags, loaded.checkpoint.metadata, rows.size()), flags.leading);
  }
  if (!flags.out.empty()) {
    Json about = description(flags, loaded, rows, columns, kernel);
    if (flags.spectrum) about["spectrum"] = spectrum;
    write_npy(flags.out, kernel.theta);
    write_file_atomically(description_path(flags.out), about.dump(2) + "\n");
  }
  if (flags.json) {
    Json result{{"summary", to_json(kernel.summary)}};
    if (!flags.out.empty()) result["out"] = flags.out;
    if (flags.spectrum) result["spectrum"] = spectrum;
    std::printf("%s\n", result.dump(2).c_str());
    return;
  }
  std::printf("%s\n",
              flags.layers ? kernel.summary.full().c_str() : kernel.summary.brief().c_str());
  if (flags.spectrum) print_spectrum(spectrum, kernel.theta.size(0));
  if (!flags.out.empty()) {
    std::printf(
        "Written: %s (float64, row = example * %lld + class) and %s (ids of the examples)\n",
        flags.out.c_str(), static_cast<long long>(left.classes()),
        description_path(flags.out).c_str());
  }
}

void add_options(CLI::App& command, KernelFlags& flags) {
  command.add_option("--model", flags.model, "Weights (.safetensors) or TorchScript model (.pt)")
      ->type_name("FILE")
      ->required();
  command.add_option("--out", flags.out, "Where the kernel goes, for numpy.load")
      ->type_name("FILE.npy");
  const CLI::IsMember parts({"train", "validation", "test"});
  command.add_option("--part", flags.part, "Which part of the data the rows come from")
      ->check(parts)
      ->capture_default_str();
  command.add_option("--ids", flags.ids, "Only these examples, one id a line, in this order")
      ->type_name("FILE");
  command
      .add_option("--against", flags.against,
                  "Columns from another data set, selected in the same way")
      ->type_name("SPEC");
  command.add_option("--against-part", flags.against_part, "Columns from another part")
      ->check(parts);
  command.add_option("--against-ids", flags.against_ids, "Columns: only these examples")
      ->type_name("FILE");
  command.add_flag("--spectrum", flags.spectrum,
                   "Print leading eigenvalues and the effective dimension");
  command.add_option("--leading", flags.leading, "How many eigenvalues")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--ridge", flags.ridges,
                  "Ridges for the effective dimension (default: N * weight decay of the training)")
      ->type_name("R");
  command
      .add_option("--memory", flags.memory,
                  "What the computation may take, such as 2G (default: half of what is free)")
      ->type_name("BYTES");
  command
      .add_option("--contraction", flags.contraction,
                  "Use one contraction wherever it is exact: explicit, hadamard, class-sharing, "
                  "linear-tail (default: the cheapest for each layer)")
      ->type_name("NAME");
  command.add_option("--threads", flags.threads, "Threads (default: all cores)")->type_name("N");
  command.add_flag("--layers", flags.layers, "Print what was done for each layer");
  command.add_flag("--force", flags.force, "Overwrite the file if it exists");
  command.add_flag("--quiet", flags.quiet, "No progress bar");
  command.add_flag("--json", flags.json, "Print the summary as JSON");
  add_data_options(command, flags.data);
  add_normalization_options(command, flags.data);
}

}  // namespace

void add_kernel_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("kernel", "Compute the neural tangent kernel J J' of a model");
  const auto flags = std::make_shared<KernelFlags>();
  add_options(*command, *flags);
  command->footer(
      "Row and column = example * classes + class. Data are those that the model was trained on, "
      "unless given again.\n"
      "Example: pumice kernel --model w.safetensors --out theta.npy --spectrum");
  command->callback([command, flags] { run_kernel(*command, *flags); });
}

}  // namespace pumice::cli
