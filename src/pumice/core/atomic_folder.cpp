#include "pumice/core/atomic_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

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

}  // namespace

AtomicFolder::AtomicFolder(std::filesystem::path target)
    : target_(without_trailing_slash(std::move(target))) {
  refuse_existing(target_);
  const std::filesystem::path parent =
      target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  std::error_code reason;
  std::filesystem::create_directories(parent, reason);
  if (reason) fail(parent.string(), ": cannot be made, ", reason.message());
  std::string pattern = (parent / text(".", target_.filename().string(), ".XXXXXX")).string();
  if (!::mkdtemp(pattern.data())) {
    fail(parent.string(), ": no folder can be made in it, ", std::strerror(errno));
  }
  temporary_ = pattern;
}

AtomicFolder::~AtomicFolder() {
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

void AtomicFolder::commit() {
  refuse_existing(target_);
  using std::filesystem::perms;
  std::error_code reason;
  // mkdtemp makes it private; the result is an ordinary folder.
  std::filesystem::permissions(temporary_,
                               perms::owner_all | perms::group_read | perms::group_exec |
                                   perms::others_read | perms::others_exec,
                               reason);
  if (!reason) std::filesystem::rename(temporary_, target_, reason);
  if (reason) fail(target_.string(), ": cannot be written, ", reason.message());
  committed_ = true;
}

}  // namespace pumice
