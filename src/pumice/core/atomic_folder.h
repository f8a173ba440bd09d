// A folder that appears whole or not at all: filled under a temporary name beside the target,
// renamed.
#pragma once

#include <filesystem>

namespace pumice {

// Makes an empty temporary folder beside `target` (and the folders above it); commit() renames it.
// Without a commit it is removed with all that is in it. Throws Error if `target` exists already.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::filesystem::path target);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& temporary_path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

}  // namespace pumice
