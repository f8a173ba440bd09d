// What a command does so that several processes share its work.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "pumice/cli/forget_options.h"
#include "pumice/forgetting/forgetting_task.h"
#include "pumice/forgetting/solve_checkpoint.h"
#include "pumice/parallel/process_group.h"

namespace pumice::cli {

// How to find the others and what to do when one is lost: end, and say where rank 0's checkpoint
// is. `flags` must live as long as the group.
ProcessGroupOptions group_options(const ForgetFlags& flags);

// Everything that an answer depends on, each with its digest: processes must not work on different
// requests, and a checkpoint not be taken for another's.
using RequestIdentity = std::vector<std::pair<std::string, std::string>>;
RequestIdentity identity_of(const ForgettingTask& task, const ForgetFlags& flags);

// Which examples are this process's own, how sums and tiles find together, and a share of the
// memory where several are on one host. Does nothing if there is one process. `group` has to live
// longer than `options` are used.
void share_work(ProcessGroup& group, LinearProblemOptions& options);

// At checkpoint_path(), for the process that writes; another keeps nothing.
SolveCheckpoint open_solve_checkpoint(const ForgetFlags& flags, const RequestIdentity& identity,
                                      bool writes);
// --checkpoint, or beside --out.
std::filesystem::path checkpoint_path(const ForgetFlags& flags);

// What to say of a checkpoint at the end of a run that did not come to its end; empty if there is
// none.
std::string kept_checkpoint_text(const std::filesystem::path& path);
// The same for a solve that ran out of iterations.
std::string unfinished_checkpoint_text(const SolveCheckpoint& checkpoint);

}  // namespace pumice::cli
