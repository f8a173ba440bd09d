// Executing a protocol: what pumice run and pumice demo share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pumice/experiment/experiment.h"
#include "pumice/record/record.h"

namespace pumice::cli {

struct ExperimentCall {
  std::string protocol, out, key;
  std::string command;                    // for the record
  std::vector<std::uint64_t> seeds = {};  // of the protocol's; none: all
  bool quiet = false;
};

struct FinishedExperiment {
  Record record;
  std::filesystem::path record_file;
  Experiment::Summary summary;
  std::vector<std::filesystem::path> traces;
};

// Executes it, or what is left of it, and writes OUT/record.json.
FinishedExperiment run_experiment(const ExperimentCall& call);
// The short table, the traces and where the record is, on standard output.
void print_results(const FinishedExperiment& finished);

}  // namespace pumice::cli
