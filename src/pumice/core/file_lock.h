// One process at a time: an advisory lock on a file.
#pragma once

#include <filesystem>

namespace pumice {

// Holds the lock as long as it lives; the system takes it back when the process ends, however it
// ends. The file stays (removing it would let two processes hold two locks) and names the holder.
class FileLock {
 public:
  // Does not wait. Throws Error, with the holder's process number where it is known, if somebody
  // else has it; and Error if the file can be neither made nor opened.
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace pumice
