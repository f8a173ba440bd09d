// What an experiment needs before its first step: protocol, data of every seed, and the body.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/experiment/protocol.h"
#include "pumice/experiment/step_store.h"
#include "pumice/model/start.h"

namespace pumice {

// The seed chooses examples, cohort, head and order, each from a stream of its own.
struct SeedData {
  std::uint64_t seed = 1;
  DataRequest request;
  Selection selection;
  std::string train_digest, test_digest, validation_digest;
};

class ExperimentSetup {
 public:
  // Loads the data and opens the body. Throws Error in one sentence, before any work, if something
  // is not at hand: what is expected where, and how to get it. `threads` are part of every key:
  // another number gives other bytes.
  ExperimentSetup(Protocol protocol, std::filesystem::path out, int threads);

  const Protocol& protocol() const { return protocol_; }
  const std::filesystem::path& out() const { return out_; }
  const StepStore& store() const { return store_; }
  const std::vector<SeedData>& seeds() const { return seeds_; }
  int threads() const { return threads_; }

  // Of the body: none if it is a file or if there is none.
  const std::optional<StepKey>& pretraining() const { return pretraining_; }
  std::filesystem::path pretrained_file() const;  // where that step leaves it
  nlohmann::json body_identity() const { return body_identity_; }
  const std::string& body_digest() const { return body_digest_; }  // of the file; "" otherwise

  // w0 of a seed, and how its inputs are normalised. Needs the body, so the step that makes it.
  struct SeedStart {
    Start start;
    Normalization normalization;
  };
  SeedStart start_of(const SeedData& seed) const;
  // The same network with fresh weights: for forecasts before the body is there.
  Start network_for(const SeedData& seed) const;

 private:
  Protocol protocol_;
  std::filesystem::path out_;
  StepStore store_;
  int threads_;
  std::vector<SeedData> seeds_;
  std::optional<Checkpoint> body_;
  std::optional<StepKey> pretraining_;
  nlohmann::json body_identity_;
  std::string body_digest_;
};

}  // namespace pumice
