#include "pumice/core/sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "pumice/core/error.h"

namespace pumice {
namespace {

void sync(const std::filesystem::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) fail(path.string(), ": cannot be opened, ", std::strerror(errno));
  const int result = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  // Some file systems cannot sync folders; that is no reason to lose the result.
  if (result != 0 && reason != EINVAL)
    fail(path.string(), ": cannot be synced, ", std::strerror(reason));
}

}  // namespace

void sync_file(const std::filesystem::path& path) {
  sync(path, O_RDONLY);
}

void sync_folder(const std::filesystem::path& folder) {
  sync(folder, O_RDONLY | O_DIRECTORY);
}

}  // namespace pumice
