// Several files change together or not at all, wherever a kill or a full disk interrupts it.
//
// What is new is written beside its target under a temporary name. A journal, one small file in the
// folder that the transaction belongs to, says which phase it is in:
//   preparing   temporary files may be there; whoever finds this takes them away again
//   committing  all temporary files are complete and synced; whoever finds this does what is left
// The journal itself is replaced atomically, so that the change from one phase to the other is the
// one moment at which the transaction has happened.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pumice {

// What becomes of the file that was in the place of a new one. `wiped`: overwritten with zeros,
// synced, and only then unlinked. (A file system that writes copies, or a drive that spreads its
// writes, may keep older blocks all the same.)
enum class Replaced { unlinked, wiped };

struct StagedFile {
  std::filesystem::path target;  // absolute
  Replaced replaced = Replaced::unlinked;

  std::filesystem::path staged() const;  // where its new content waits
  std::filesystem::path old() const;     // where what is to be wiped waits
};

class Transaction {
 public:
  // `folder` holds the journal; the caller sees to it that there is one transaction at a time.
  // `on_step` is told each step that has reached the disk. If it throws, this object leaves the
  // files as a kill at that moment would: for tests.
  using OnStep = std::function<void(const std::string& step)>;
  explicit Transaction(std::filesystem::path folder, OnStep on_step = {});
  // Rolls back unless it was committed.
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Where to write what will be `target` (in `folder` or anywhere else, on any file system). Throws
  // Error if the folder of the target is missing.
  std::filesystem::path stage(const std::filesystem::path& target,
                              Replaced replaced = Replaced::unlinked);

  // Throws Error before the change of phase if a staged file is missing or cannot be synced: all is
  // as before then. An Error after it (a medium that fails) leaves the journal, and recover()
  // completes the work.
  void commit();

 private:
  void step(const std::string& name);

  std::filesystem::path folder_;
  OnStep on_step_;
  std::vector<StagedFile> files_;
  bool settled_ = false;  // nothing is to be rolled back
};

enum class Recovery { nothing, rolled_back, completed };
// What an interrupted transaction left in `folder` is completed or taken away, by its phase. Throws
// Error if the journal is damaged or something cannot be done.
Recovery recover(const std::filesystem::path& folder);

// Zeros over the whole file, synced, then unlinked. Throws Error.
void wipe_file(const std::filesystem::path& path);

}  // namespace pumice
