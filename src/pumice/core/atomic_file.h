// Results appear whole or not at all: written to a temporary file in the same folder, synced,
// renamed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pumice {

// Who may read a file that is made: whom the umask allows, or its owner alone, from its first byte.
enum class Readers { everyone, owner };

// Gives out a temporary path beside `target`; commit() syncs and renames it. Without a commit the
// temporary file is removed. Throws Error when the folder is missing or the disk is full.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target, Readers readers = Readers::everyone);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& temporary_path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

// For a process that has to end at once, from any thread: the temporary files of all AtomicFiles
// that are not committed. None can be made or committed afterwards, so call it last.
void remove_temporary_files();

// What writing `target` left when it was killed. Only for whoever knows that nobody writes it now.
void remove_leftovers(const std::filesystem::path& target);

void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Readers readers = Readers::everyone);
std::string read_file(const std::filesystem::path& path);  // throws Error with the system's reason

}  // namespace pumice
