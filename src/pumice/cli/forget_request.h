// What pumice forget opens before any work is done, and checks against each other.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pumice/cli/forget_options.h"
#include "pumice/cli/loaded_model.h"
#include "pumice/data/split.h"
#include "pumice/forgetting/forgetting_method.h"
#include "pumice/model/checkpoint.h"

namespace pumice::cli {

struct ForgetRequest {
  LoadedModel loaded;
  std::optional<Checkpoint> start;
  std::vector<Weights> references;
  std::vector<std::string> cohort_ids;
  Split split;
  std::optional<TrainingOptions> recipe;  // as the model says
  Dataset validation;
};

// Error for a file that is missing, broken or of another model or other data. With `writes`, and
// unless it is a dry run, also for outputs that exist (unless --force), are inputs, have the wrong
// ending or are a file where a folder is needed.
ForgetRequest open_request(const CLI::App& command, const ForgetFlags& flags, bool writes);

// `request` has to live as long as the task. UsageError for options that contradict the model or
// leave open what it does not say: where weight decay pulled to, and how strongly.
ForgettingTask make_task(const ForgetFlags& flags, const ForgetRequest& request);

// Whether weight decay pulled to zero, and neither to the start nor to the weights themselves.
bool pulls_to_zero(const ForgetFlags& flags, const ForgetRequest& request);

// Where the result of one method goes: `name`, or a file in the folder `name` for several methods.
std::filesystem::path out_path(const ForgetFlags& flags, const std::string& name,
                               const std::string& method, const std::string& extension);
bool several_methods(const ForgetFlags& flags);

}  // namespace pumice::cli
