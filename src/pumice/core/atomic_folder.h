// A folder that appears whole or not at all: filled under a temporary name beside the target,
// renamed.
#pragma once

#include <filesystem>

#include "pumice/core/atomic_file.h"

namespace pumice {

// Makes an empty temporary folder beside `target` (and the folders above it), for its owner alone
// until commit() renames it. Without a commit it is removed with all that is in it; what a run left
// that was killed is removed by the next one for the same target. Throws Error if `target` exists
// already.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::filesystem::path target, Readers readers = Readers::everyone);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& temporary_path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  Readers readers_;
  int held_ = -1;  // descriptor of the temporary folder, locked: somebody is at work in it
  bool committed_ = false;
};

}  // namespace pumice
