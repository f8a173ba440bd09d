#include "pumice/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/core/interrupt.h"
#include "pumice/core/progress.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

// The path below `folder`, or Error if it could lead out of it.
fs::path safe_path(const std::string& name, const std::string& archive_name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) {
    fail(archive_name, ": entry '", name, "' has an absolute or empty path, it must stay inside");
  }
  for (const fs::path& part : path) {
    if (part == "..") fail(archive_name, ": entry '", name, "' has '..', it must stay inside");
  }
  return path;
}

class ArchiveReader {
 public:
  explicit ArchiveReader(const fs::path& path) : path_(path), archive_(archive_read_new()) {
    archive_read_support_filter_gzip(archive_);
    archive_read_support_format_tar(archive_);
    archive_read_support_format_zip(archive_);
    if (archive_read_open_filename(archive_, path.c_str(), 1 << 18) != ARCHIVE_OK) refuse();
  }
  ~ArchiveReader() { archive_read_free(archive_); }
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_, &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    // A warning is about names in another character set, which stay as they are.
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) refuse();
    return entry;
  }

  std::size_t read(std::vector<char>& buffer) {
    const la_ssize_t size = archive_read_data(archive_, buffer.data(), buffer.size());
    if (size < 0) refuse();
    return static_cast<std::size_t>(size);
  }

  std::int64_t bytes_read() const { return archive_filter_bytes(archive_, -1); }

 private:
  [[noreturn]] void refuse() {
    const char* reason = archive_error_string(archive_);
    fail(path_.string(), ": damaged, or neither .tar.gz nor .zip", reason ? ", " : "",
         reason ? reason : "");
  }

  fs::path path_;
  ::archive* archive_;
};

void make_folders(const fs::path& folder) {
  std::error_code reason;
  fs::create_directories(folder, reason);
  if (reason) fail(folder.string(), ": cannot be made, ", reason.message());
}

}  // namespace

void extract_archive(const fs::path& path, const fs::path& folder, std::uint64_t largest_total) {
  if (!fs::is_regular_file(path)) fail(path.string(), ": no such file");
  ArchiveReader reader(path);
  Progress progress("Unpacking " + path.filename().string(),
                    static_cast<std::int64_t>(fs::file_size(path)));
  std::vector<char> buffer(1 << 18);
  std::uint64_t total = 0;
  while (archive_entry* entry = reader.next()) {
    const char* raw_name = archive_entry_pathname(entry);
    const std::string name = raw_name ? raw_name : "";
    const fs::path target = folder / safe_path(name, path.string());
    const auto type = archive_entry_filetype(entry);
    const bool link = archive_entry_hardlink(entry) || archive_entry_symlink(entry);
    if (link || (type != AE_IFREG && type != AE_IFDIR)) {
      fail(path.string(), ": entry '", name, "' is a link or a device, must be a file or a folder");
    }
    if (type == AE_IFDIR) {
      make_folders(target);
      continue;
    }
    make_folders(target.parent_path());
    std::ofstream out(target, std::ios::binary);
    while (const std::size_t size = reader.read(buffer)) {
      if (interrupted()) fail(path.string(), ": interrupted while unpacking");
      total += size;
      if (total > largest_total) {
        fail(path.string(), ": unpacks to more than ", largest_total, " bytes, which is refused");
      }
      out.write(buffer.data(), static_cast<std::streamsize>(size));
      progress.update(reader.bytes_read());
    }
    out.close();
    if (!out) fail(target.string(), ": cannot be written, the disk may be full");
  }
}

}  // namespace pumice
