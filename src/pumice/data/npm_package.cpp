#include "pumice/data/npm_package.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/core/interrupt.h"
#include "pumice/data/checksum.h"

extern char** environ;

namespace pumice {
namespace {

namespace fs = std::filesystem;

constexpr auto longest_wait = std::chrono::minutes(30);

struct SpawnActions {
  posix_spawn_file_actions_t actions;

  SpawnActions() { posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
};

// Both its outputs go to `log`. An argument list, not a shell line: nothing needs quoting.
pid_t start(std::vector<std::string> words, const fs::path& folder, const fs::path& log) {
  SpawnActions spawn;
  posix_spawn_file_actions_addchdir_np(&spawn.actions, folder.c_str());
  posix_spawn_file_actions_addopen(&spawn.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&spawn.actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&spawn.actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int reason = posix_spawnp(&process, words.front().c_str(), &spawn.actions, nullptr,
                                  arguments.data(), environ);
  if (reason != 0) fail(words.front(), ": cannot be started, ", std::strerror(reason));
  return process;
}

// The exit status, or Error after ending the process when interrupted or too slow.
int wait_for(pid_t process) {
  const auto deadline = std::chrono::steady_clock::now() + longest_wait;
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process) return status;
    if (ended < 0 && errno != EINTR) fail("npm: cannot be waited for, ", std::strerror(errno));
    const bool late = std::chrono::steady_clock::now() > deadline;
    if (late || interrupted()) {
      ::kill(process, SIGTERM);
      ::waitpid(process, &status, 0);
      fail("npm: ", late ? "took longer than half an hour" : "interrupted");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

bool has_npm() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder) / "npm";
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0)
      return true;
  }
  return false;
}

fs::path fetch_npm_archive(const NpmPackage& package, const fs::path& folder) {
  const fs::path log = folder / "npm.log";
  const std::string wanted = package.name + "@" + package.version;
  const int status = wait_for(start({"npm", "pack", wanted, "--pack-destination",
                                     fs::absolute(folder).string(), "--ignore-scripts"},
                                    folder, fs::absolute(log)));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::string said = read_file(log).substr(0, 600);
    while (!said.empty() && said.back() == '\n') said.pop_back();
    fail("npm pack ", wanted, ": failed, it said: ", said);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".tgz") continue;
    const std::string found = sha512_base64_of_file(entry.path());
    if (found != package.sha512) {
      fail("npm pack ", wanted, ": SHA-512 is ", found, ", must be ", package.sha512);
    }
    return entry.path();
  }
  fail("npm pack ", wanted, ": wrote no .tgz file");
}

}  // namespace pumice
