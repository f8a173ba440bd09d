// Results of finished steps, each under the digest of everything it depends on.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace pumice {

// A step by what it depends on: two steps with the same key have the same result.
struct StepKey {
  std::string kind;        // "training", "scrub", … : also the beginning of its folder's name
  nlohmann::json depends;  // all of it, the format's revision included

  std::string digest() const;  // BLAKE2b of both, 64 hex digits
};

// What a step leaves: numbers here, weights in files of its folder.
struct StepResult {
  nlohmann::json content;
  double seconds = 0;  // that it took, over all starts
};

// FOLDER/KIND-DIGEST/step.json, written last and atomically: a step is finished when it is there,
// so a kill at any moment leaves either a finished step or none. Other files of the folder are the
// step's own, and may help it to continue.
class StepStore {
 public:
  explicit StepStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_of(const StepKey& key) const;  // need not exist
  // None if it is not finished. A file that is damaged, or was written for another key, throws
  // Error: it is not overwritten silently.
  std::optional<StepResult> find(const StepKey& key) const;
  std::filesystem::path prepare(const StepKey& key) const;  // makes the folder
  void finish(const StepKey& key, const StepResult& result) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace pumice
