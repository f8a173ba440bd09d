// The options of pumice audit.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/data_request.h"
#include "pumice/evaluation/audit.h"
#include "pumice/forgetting/noise.h"

namespace pumice::cli {

// Everything that was said on the command line; what was not said stays empty.
struct AuditFlags {
  std::string model, original, init, cohort, distribution, record, key;
  std::vector<std::string> references;  // files; or "retrain" or "none" alone
  std::optional<std::int64_t> reference_count, shadows;
  DataRequest data;
  std::vector<std::string> only;
  std::string shadow_method = "consistent";
  NoiseOptions noise;
  std::optional<std::string> noise_shape, answers, memory;
  AuditOptions audit;
  bool explain = false, force = false, quiet = false, json = false;
  std::optional<int> threads;

  bool retrain() const { return references.size() == 1 && references.front() == "retrain"; }
  bool no_reference() const { return references.size() == 1 && references.front() == "none"; }
};

// Declares all of them, in the order of --help. `flags` must live until the line is parsed.
void add_audit_options(CLI::App& command, AuditFlags& flags);

// What can be judged without opening a file: UsageError with option, value and rule. Fills the
// audit's options from their names.
void check_audit_flags(const CLI::App& command, AuditFlags& flags);

}  // namespace pumice::cli
