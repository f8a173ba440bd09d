// A protocol: an experiment as a TOML file (docs/protocols.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/data_request.h"
#include "pumice/evaluation/audit.h"
#include "pumice/forgetting/scrub.h"
#include "pumice/model/training.h"

namespace pumice {

// A body that no file holds yet: trained as a step of the experiment, once for all seeds.
struct Pretraining {
  DataRequest data;
  TrainingOptions recipe = pretraining_recipe();
};

struct ModelProtocol {
  std::filesystem::path body = {};  // absolute, or relative to the working folder; or:
  std::string architecture = {};
  double width = 1;
  std::optional<Pretraining> pretraining = {};  // none: fresh weights
};

struct MethodProtocol {
  std::string label;  // unique; the name unless told
  ScrubOptions scrub;
};

struct FigureProtocol {
  std::vector<double> tradeoff = {};   // noise scales; empty: no trade-off
  std::int64_t tradeoff_queries = 50;  // of each set, at most: black-box bounds are means over them
  bool ablations = false;
  bool landscape = false;
  bool projection = false;
};

struct Protocol {
  std::string title;
  std::string text;            // of the file, for the record
  std::filesystem::path file;  // as given
  std::vector<std::uint64_t> seeds = {1};
  DataRequest data;  // its seed is that of the run
  ModelProtocol model;
  TrainingOptions recipe = finetuning_recipe();  // its seeds are those of the run
  std::string cohort_class;
  std::int64_t cohort_size = 0;
  std::int64_t cohorts = 1;  // for each seed
  std::int64_t references = 2;
  bool replace = false;  // retrained models: the cohort's places filled by repeats
  std::vector<MethodProtocol> methods;
  AuditOptions audit;        // groups; progress and memory are the runner's
  std::int64_t shadows = 0;  // of each kind; 0: none
  FigureProtocol figures;
  std::optional<std::int64_t> memory = {};  // of kernels
};

// Throws Error with file, line and rule: unknown keys, wrong types, values out of range, parts that
// contradict each other. Data and body need not be there.
Protocol read_protocol(const std::filesystem::path& file);
Protocol parse_protocol(const std::string& text, const std::filesystem::path& file);

// The same experiment with some of its seeds only, so that they can be run apart: reports join the
// records. Landscape and projection belong to the protocol's first seed. Throws Error for a seed
// that is not the protocol's.
Protocol with_seeds(Protocol protocol, const std::vector<std::uint64_t>& seeds);

}  // namespace pumice
