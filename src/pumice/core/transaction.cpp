#include "pumice/core/transaction.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/core/sync.h"

namespace pumice {

namespace files = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char* journal_name = "journal.json";
constexpr const char* preparing = "preparing";
constexpr const char* committing = "committing";

void move(const files::path& from, const files::path& to) {
  std::error_code reason;
  files::rename(from, to, reason);
  if (reason) fail(to.string(), ": cannot be written, ", reason.message());
  sync_folder(to.parent_path());
}

files::path beside(const files::path& target, const char* ending) {
  return target.parent_path() / text(".", target.filename().string(), ending);
}

// Targets within the folder are written down relative to it, so that the folder may be moved.
void write_journal(const files::path& folder, const char* phase,
                   const std::vector<StagedFile>& entries) {
  Json list = Json::array();
  for (const StagedFile& entry : entries) {
    const bool inside = entry.target.parent_path() == folder;
    list.push_back({{"target", inside ? entry.target.filename().string() : entry.target.string()},
                    {"replaced", entry.replaced == Replaced::wiped ? "wiped" : "unlinked"}});
  }
  write_file_atomically(folder / journal_name,
                        Json{{"phase", phase}, {"files", list}}.dump() + "\n");
}

void remove_journal(const files::path& folder) {
  std::error_code reason;
  files::remove(folder / journal_name, reason);
  if (reason) fail((folder / journal_name).string(), ": cannot be removed, ", reason.message());
  sync_folder(folder);
}

void roll_back(const files::path& folder, const std::vector<StagedFile>& entries) {
  for (const StagedFile& entry : entries) {
    std::error_code missing;
    files::remove(entry.staged(), missing);
    remove_leftovers(entry.staged());
  }
  remove_journal(folder);
}

// Every step can be repeated: what was done before an interruption is found done.
void complete(const files::path& folder, const std::vector<StagedFile>& entries,
              const Transaction::OnStep& step) {
  for (const StagedFile& entry : entries) {
    const std::string name = entry.target.filename().string();
    if (files::exists(entry.staged())) {
      if (entry.replaced == Replaced::wiped && files::exists(entry.target)) {
        move(entry.target, entry.old());
        step(name + " put aside");
      }
      move(entry.staged(), entry.target);
      step(name + " replaced");
    }
    if (files::exists(entry.old())) {
      wipe_file(entry.old());
      step(name + " wiped");
    }
  }
  remove_journal(folder);
}

files::path normal(const files::path& path) {
  const files::path whole = files::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

}  // namespace

files::path StagedFile::staged() const {
  return beside(target, ".staged");
}

files::path StagedFile::old() const {
  return beside(target, ".old");
}

void wipe_file(const files::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path.string(), ": cannot be opened to be wiped, ", std::strerror(errno));
  const std::string zeros(1 << 20, '\0');
  auto left = static_cast<std::size_t>(files::file_size(path));
  bool written = true;
  while (left > 0 && written) {
    const ssize_t size = ::write(descriptor, zeros.data(), std::min(left, zeros.size()));
    if (size > 0) left -= static_cast<std::size_t>(size);
    written = size > 0 || (size < 0 && errno == EINTR);
  }
  written = written && ::fsync(descriptor) == 0;
  const int reason = errno;
  ::close(descriptor);
  if (!written) fail(path.string(), ": cannot be wiped, ", std::strerror(reason));
  std::error_code failed;
  files::remove(path, failed);
  if (failed) fail(path.string(), ": was wiped but cannot be removed, ", failed.message());
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

Transaction::Transaction(files::path folder, OnStep on_step)
    : folder_(normal(folder)), on_step_(std::move(on_step)) {}

Transaction::~Transaction() {
  if (settled_ || files_.empty()) return;
  try {
    roll_back(folder_, files_);
  } catch (const Error&) {
    // The journal is still there: whoever comes next takes the files away.
  }
}

void Transaction::step(const std::string& name) {
  if (!on_step_) return;
  try {
    on_step_(name);
  } catch (...) {
    settled_ = true;
    throw;
  }
}

files::path Transaction::stage(const files::path& target, Replaced replaced) {
  const StagedFile entry{normal(target), replaced};
  if (!files::is_directory(entry.target.parent_path())) {
    fail(target.string(), ": cannot be written, there is no folder ",
         entry.target.parent_path().string());
  }
  files_.push_back(entry);
  write_journal(folder_, preparing, files_);
  step(entry.target.filename().string() + " announced");
  return entry.staged();
}

void Transaction::commit() {
  for (const StagedFile& entry : files_) sync_file(entry.staged());
  step("staged");
  write_journal(folder_, committing, files_);
  settled_ = true;
  step("committed");
  complete(folder_, files_, [this](const std::string& name) { step(name); });
  step("done");
}

Recovery recover(const files::path& given) {
  const files::path folder = normal(given);
  const files::path journal = folder / journal_name;
  remove_leftovers(journal);
  if (!files::exists(journal)) return Recovery::nothing;
  const Json content = Json::parse(read_file(journal), nullptr, false);
  std::vector<StagedFile> entries;
  std::string phase;
  try {
    phase = content.at("phase").get<std::string>();
    for (const Json& file : content.at("files")) {
      entries.push_back({folder / file.at("target").get<std::string>(),
                         file.at("replaced") == "wiped" ? Replaced::wiped : Replaced::unlinked});
    }
  } catch (const Json::exception&) {
    phase.clear();
  }
  if (phase == committing) {
    complete(folder, entries, [](const std::string&) {});
    return Recovery::completed;
  }
  if (phase != preparing) {
    fail(journal.string(), ": damaged, so what an interrupted change left cannot be put in order");
  }
  roll_back(folder, entries);
  return Recovery::rolled_back;
}

}  // namespace pumice
