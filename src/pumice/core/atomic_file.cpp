#include "pumice/core/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/core/sync.h"

namespace pumice {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Locked while a file comes to be or takes its place; never unlocked after
// remove_temporary_files().
struct Unfinished {
  std::mutex mutex;
  std::set<std::filesystem::path> paths;
};

Unfinished& unfinished() {
  static auto* const all = new Unfinished;  // lives as long as any thread does
  return *all;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target, Readers readers) : target_(std::move(target)) {
  const std::filesystem::path folder = folder_of(target_);
  if (!std::filesystem::is_directory(folder)) {
    fail(target_.string(), ": cannot be written, there is no folder ", folder.string());
  }
  temporary_ = folder / text(".", target_.filename().string(), ".", ::getpid(), ".tmp");
  const std::lock_guard lock(unfinished().mutex);
  if (readers == Readers::owner) {
    const int made = ::open(temporary_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (made < 0) fail(target_.string(), ": cannot be written, ", std::strerror(errno));
    ::close(made);
  }
  unfinished().paths.insert(temporary_);
}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  const std::lock_guard lock(unfinished().mutex);
  unfinished().paths.erase(temporary_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  sync_file(temporary_);
  {
    const std::lock_guard lock(unfinished().mutex);
    std::error_code reason;
    std::filesystem::rename(temporary_, target_, reason);
    if (reason) fail(target_.string(), ": cannot be written, ", reason.message());
    unfinished().paths.erase(temporary_);
    committed_ = true;
  }
  sync_folder(folder_of(target_));
}

void remove_temporary_files() {
  unfinished().mutex.lock();
  for (const std::filesystem::path& path : unfinished().paths) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
}

void remove_leftovers(const std::filesystem::path& target) {
  const std::string begin = text(".", target.filename().string(), ".");
  std::vector<std::filesystem::path> doomed;
  std::error_code missing;
  for (const auto& file : std::filesystem::directory_iterator(folder_of(target), missing)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(".tmp")) doomed.push_back(file.path());
  }
  for (const std::filesystem::path& one : doomed) std::filesystem::remove(one, missing);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Readers readers) {
  AtomicFile file(path, readers);
  {
    std::ofstream out(file.temporary_path(), std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) fail(path.string(), ": cannot be written, ", std::strerror(errno));
  }
  file.commit();
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code reason;
  if (std::filesystem::is_directory(path, reason))
    fail(path.string(), ": is a folder, must be a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path.string(), ": cannot be read, ", std::strerror(errno));
  std::string content(static_cast<std::size_t>(std::filesystem::file_size(path)), '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!in) fail(path.string(), ": cannot be read to its end");
  return content;
}

}  // namespace pumice
