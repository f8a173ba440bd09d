#include "pumice/core/atomic_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "pumice/core/error.h"
#include "pumice/core/sync.h"

namespace pumice {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  const std::filesystem::path folder = folder_of(target_);
  if (!std::filesystem::is_directory(folder)) {
    fail(target_.string(), ": cannot be written, there is no folder ", folder.string());
  }
  temporary_ = folder / text(".", target_.filename().string(), ".", ::getpid(), ".tmp");
}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  sync_file(temporary_);
  std::error_code reason;
  std::filesystem::rename(temporary_, target_, reason);
  if (reason) fail(target_.string(), ": cannot be written, ", reason.message());
  committed_ = true;
  sync_folder(folder_of(target_));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
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
