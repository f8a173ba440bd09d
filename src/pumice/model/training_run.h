// A training with its files: start, log, state for resuming, result.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "pumice/core/progress.h"
#include "pumice/data/normalization.h"
#include "pumice/model/model.h"
#include "pumice/model/training.h"

namespace pumice {

// Beside NAME.ext (the result) a run writes
//   NAME.start.ext            the weights it started from: the --init of forgetting and auditing
//   NAME.log.jsonl            one line an epoch: loss, error, rate, seconds
//   NAME.resume.safetensors   the state after the last finished epoch; removed when the run is done
//   NAME.epochs/epoch-0007.ext  every epoch's weights, if asked for
// Each is replaced atomically, so a run that is killed at any moment loses at most the epoch it was
// in.
struct TrainingRunOptions {
  std::filesystem::path out;
  TrainingOptions training;
  Metadata metadata;  // goes into all files of the run; "recipe" and "init_digest" are added
  bool resume = false;
  bool force = false;  // overwrite a result, or start over an interrupted run
  bool keep_epochs = false;
  ProgressMode progress = ProgressMode::automatic;
  // Also told which share of the largest number of epochs is done, for bars of the caller's own.
  std::function<void(double share)> observer = {};
};

enum class TrainingRunStatus { finished, already_finished, interrupted };

struct TrainingRunSummary {
  TrainingRunStatus status = TrainingRunStatus::finished;
  std::vector<EpochReport> history;
  std::int64_t resumed_after = 0;  // epochs that an earlier run had done
  double seconds = 0;              // of this run
  std::vector<std::filesystem::path> files;
};

// `weights` are the start on entry and the result on return. Throws Error before any work if the
// result exists, or if an interrupted run is there and neither resume nor force is set, or if the
// interrupted run differs in recipe, data or start (it says in what).
TrainingRunSummary run_training(Model& model, Weights& weights, const TrainingSet& set,
                                const Normalization& normalization,
                                const TrainingRunOptions& options);

std::filesystem::path start_path(const std::filesystem::path& out);
std::filesystem::path log_path(const std::filesystem::path& out);
std::filesystem::path resume_path(const std::filesystem::path& out);
std::filesystem::path epoch_path(const std::filesystem::path& out, std::int64_t epoch);

}  // namespace pumice
