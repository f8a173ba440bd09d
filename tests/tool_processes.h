// The tool, several times at once, as a launcher starts it on one host.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "command.h"
#include "free_port.h"
#include "temporary_folder.h"

namespace pumice::testing {

class ToolProcesses {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  // Ranks 0 … size-1 with the same arguments, and what `extra` says of one of them.
  ToolProcesses(int size, const std::vector<std::string>& arguments, int extra_rank = -1,
                const std::vector<std::string>& extra = {}) {
    const std::string port = std::to_string(free_port());
    for (int rank = 0; rank < size; ++rank) {
      std::vector<std::string> all{PUMICE_TOOL};
      all.insert(all.end(), arguments.begin(), arguments.end());
      if (rank == extra_rank) all.insert(all.end(), extra.begin(), extra.end());
      start(all, {{"RANK", std::to_string(rank)},
                  {"WORLD_SIZE", std::to_string(size)},
                  {"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", port}});
    }
  }
  ~ToolProcesses() {
    for (const pid_t process : processes_) {
      if (process > 0) ::kill(process, SIGKILL), ::waitpid(process, nullptr, 0);
    }
  }
  ToolProcesses(const ToolProcesses&) = delete;
  ToolProcesses& operator=(const ToolProcesses&) = delete;

  void signal(int rank, int number) const { ::kill(processes_[index(rank)], number); }
  bool running(int rank) const {
    siginfo_t status{};
    return ::waitid(P_PID, static_cast<id_t>(processes_[index(rank)]), &status,
                    WEXITED | WNOHANG | WNOWAIT) == 0 &&
           status.si_pid == 0;
  }
  // Waits for its end.
  CommandResult result(int rank) {
    int status = 0;
    ::waitpid(processes_[index(rank)], &status, 0);
    processes_[index(rank)] = 0;
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .output = content_of(file("out", rank)),
            .error = content_of(file("err", rank))};
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::string file(const char* name, int rank) const {
    return (folder_ / (std::string(name) + std::to_string(rank))).string();
  }

  void start(const std::vector<std::string>& arguments, const Variables& variables) {
    const int rank = static_cast<int>(processes_.size());
    const std::string out = file("out", rank), err = file("err", rank);
    std::vector<char*> words;
    for (const std::string& argument : arguments) {
      words.push_back(const_cast<char*>(argument.c_str()));
    }
    words.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
      ::dup2(::open(out.c_str(), O_CREAT | O_WRONLY, 0600), 1);
      ::dup2(::open(err.c_str(), O_CREAT | O_WRONLY, 0600), 2);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    processes_.push_back(child);
  }

  TemporaryFolder folder_;
  std::vector<pid_t> processes_;
};

}  // namespace pumice::testing
