// The iterates of a run's solves in a file, so that a run that was killed goes on from them.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "pumice/forgetting/linear_problem.h"

namespace pumice {

struct SolveCheckpointOptions {
  std::filesystem::path path = {};  // empty: nothing is kept
  // Between two writes; 0: after every iteration. A write is the size of the weights times the
  // number of solves so far, in float64, synced.
  std::chrono::milliseconds every{60000};
  // What a solve's answer depends on besides what its name says: model, data, request.
  std::string binding;
  bool ignore_existing = false;  // begin anew, whatever lies there
};

// A safetensors file, readable by its owner only: it tells of the cohort as the shift itself does,
// and of the rest of the data as well. Written whole or not at all. Runs shorter than `every` leave
// no file. Of several processes the first has a path.
class SolveCheckpoint final : public IterateStore {
 public:
  // Reads what an earlier run left. Throws Error if it belongs to another request, or is damaged.
  explicit SolveCheckpoint(SolveCheckpointOptions options);

  void save(const SolveIterate& iterate) override;
  std::optional<SolveIterate> restore(const std::string& solve) override;

  const std::filesystem::path& path() const { return options_.path; }
  bool exists() const;                                            // the file, now
  std::int64_t restored_iterations() const { return restored_; }  // that need not be done again
  void keep();    // writes what is not written yet: the run ended, but not its solves
  void remove();  // the run is through

 private:
  void read();
  void write();
  SolveIterate* find(const std::string& solve);

  SolveCheckpointOptions options_;
  std::vector<SolveIterate> iterates_;  // one for each solve, in the order of their beginnings
  std::int64_t restored_ = 0;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
};

}  // namespace pumice
