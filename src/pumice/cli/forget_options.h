// The options of pumice forget.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/data_request.h"
#include "pumice/forgetting/forgetting_method.h"
#include "pumice/forgetting/noise.h"

namespace pumice::cli {

// Everything that was said on the command line; what was not said stays empty.
struct ForgetFlags {
  std::string model, index, init, cohort, out, record, distribution, key;
  std::vector<std::string> methods, references;
  DataRequest data;
  std::optional<double> weight_decay;
  std::optional<std::string> decay_centre, loss, curvature, linearize_at, solver, noise_shape;
  std::optional<std::string> memory, validation;
  MethodOptions method;
  NoiseOptions noise;
  std::optional<double> tolerance;
  std::optional<std::int64_t> preconditioner, max_iterations;
  bool no_trapezium = false, record_ids = false, accept_unconverged = false;
  bool force = false, quiet = false, json = false, dry_run = false;
  std::optional<int> threads;
  std::string checkpoint;                                                // empty: beside --out
  double checkpoint_every = 60, heartbeat_limit = 30, join_limit = 120;  // seconds
};

// Declares all of them, in the order of --help. `flags` must live until the line is parsed.
void add_forget_options(CLI::App& command, ForgetFlags& flags);

// What can be judged without opening a file: UsageError with option, value and rule. Fills the
// methods' options from their names.
void check_forget_flags(const CLI::App& command, ForgetFlags& flags);

}  // namespace pumice::cli
