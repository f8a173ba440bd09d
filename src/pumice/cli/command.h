// The subcommands of the tool: one file each, added to the application by one function each.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/data/data_request.h"

namespace pumice::cli {

// A wrong value on the command line that only the command itself can judge: exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Work of a subcommand is done in its CLI11 callback, after everything is parsed.
void add_data_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_kernel_command(CLI::App& app);
void add_forget_command(CLI::App& app);
void add_index_command(CLI::App& app);
void add_audit_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_demo_command(CLI::App& app);
void add_report_command(CLI::App& app);

// --data, --test, --classes, --per-class, --test-per-class, --validation-per-class, --image-size,
// --channels: the same everywhere. Seeds are the command's own.
void add_data_options(CLI::App& command, DataRequest& request, bool with_spec = true);

// --mean and --std, for commands that run a network.
void add_normalization_options(CLI::App& command, DataRequest& request);

// An empty name (an unset variable of a script) must not pass for an option that was not given: a
// training that should leave a cohort out would silently include it. UsageError for the first such.
void refuse_empty_values(const CLI::App& command, const std::vector<const char*>& options);

// What an earlier command stored, except for the options that were given again on this command
// line.
DataRequest inherit_data_options(const CLI::App& command, const DataRequest& given,
                                 const DataRequest& stored);

}  // namespace pumice::cli
