// One process at a time in a folder.
#pragma once

#include <filesystem>

namespace pumice {

// Held as long as the object lives, given back by the system if the process is killed. The file
// behind it, FOLDER/.lock, stays (removing it would let two processes hold two locks) and names the
// holder. Does not wait: throws Error, with the holder's process number where it is known, if
// another process holds it.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace pumice
