#include "pumice/core/atomic_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "pumice/core/error.h"

namespace pumice {
namespace {

std::filesystem::path without_trailing_slash(std::filesystem::path path) {
  return path.has_filename() ? path : path.parent_path();
}

void refuse_existing(const std::filesystem::path& path) {
  if (std::filesystem::exists(std::filesystem::symlink_status(path))) {
    fail(path.string(), ": exists already, must not be overwritten; remove it or choose another");
  }
}

// Locked, if nobody else has it; -1 if somebody has, or this file system knows no locks.
int hold(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

constexpr const char* any_six = "XXXXXX";  // what mkdtemp replaces

// What killed runs left: the system gave their locks back.
void remove_abandoned(const std::filesystem::path& parent, const std::string& begin) {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.size() == begin.size() + std::strlen(any_six)) {
      found.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& folder : found) {
    const int held = hold(folder);
    if (held < 0) continue;
    std::filesystem::remove_all(folder, ignored);
    ::close(held);
  }
}

}  // namespace

AtomicFolder::AtomicFolder(std::filesystem::path target, Readers readers)
    : target_(without_trailing_slash(std::move(target))), readers_(readers) {
  refuse_existing(target_);
  const std::filesystem::path parent =
      target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  std::error_code reason;
  std::filesystem::create_directories(parent, reason);
  if (reason) fail(parent.string(), ": cannot be made, ", reason.message());
  const std::string begin = text(".", target_.filename().string(), ".");
  remove_abandoned(parent, begin);
  std::string pattern = (parent / (begin + any_six)).string();
  if (!::mkdtemp(pattern.data())) {
    fail(parent.string(), ": no folder can be made in it, ", std::strerror(errno));
  }
  temporary_ = pattern;
  held_ = hold(temporary_);
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove_all(temporary_, ignored);
  if (held_ >= 0) ::close(held_);
}

void AtomicFolder::commit() {
  refuse_existing(target_);
  using std::filesystem::perms;
  std::error_code reason;
  // mkdtemp makes it private.
  if (readers_ == Readers::everyone) {
    std::filesystem::permissions(temporary_,
                                 perms::owner_all | perms::group_read | perms::group_exec |
                                     perms::others_read | perms::others_exec,
                                 reason);
  }
  if (!reason) std::filesystem::rename(temporary_, target_, reason);
  if (reason) fail(target_.string(), ": cannot be written, ", reason.message());
  committed_ = true;
}

}  // namespace pumice
