// What a command does so that several processes share its work.
#pragma once

#include <filesystem>
#include <string>

#include "pumice/cli/forget_options.h"
#include "pumice/forgetting/linear_problem.h"
#include "pumice/parallel/process_group.h"

namespace pumice::cli {

// Which examples are this process's own, how sums and tiles find together, and a share of the
// memory where several are on one host. Does nothing if there is one process. `group` has to live
// longer than `options` are used.
void share_work(ProcessGroup& group, LinearProblemOptions& options);

// --checkpoint, or beside --out.
std::filesystem::path checkpoint_path(const ForgetFlags& flags);

// What to say of a checkpoint at the end of a run that did not come to its end; empty if there is
// none.
std::string kept_checkpoint_text(const std::filesystem::path& path);

}  // namespace pumice::cli
