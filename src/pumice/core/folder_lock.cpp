#include "pumice/core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "pumice/core/error.h"

namespace pumice {

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / ".lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // A copy on a read-only medium can still be looked at.
  if (descriptor_ < 0) descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(path.string(), ": cannot be opened, ", std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    std::array<char, 32> holder{};
    const ssize_t size = ::pread(descriptor_, holder.data(), holder.size() - 1, 0);
    ::close(descriptor_);
    if (reason != EWOULDBLOCK) fail(path.string(), ": cannot be locked, ", std::strerror(reason));
    fail(folder.string(), ": another run is at work in this folder",
         size > 0 ? " (process " + std::string(holder.data()) + ")" : "", ", must end first");
  }
  // Who holds it, for the other one's message: nothing depends on whether this succeeds.
  const std::string own = std::to_string(::getpid());
  if (::ftruncate(descriptor_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(descriptor_, own.data(), own.size(), 0);
  }
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

}  // namespace pumice
