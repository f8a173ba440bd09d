// Runs a program and keeps what it said.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "temporary_folder.h"

namespace pumice::testing {

struct CommandResult {
  int exit_code = -1;  // 128 + signal if it was killed
  std::string output;  // standard output
  std::string error;   // standard error
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// `command` is a line for the shell.
inline CommandResult run_command(const std::string& command) {
  const TemporaryFolder folder;
  const std::string output = (folder / "out").string();
  const std::string error = (folder / "err").string();
  const int status = std::system(("(" + command + ") >" + output + " 2>" + error).c_str());
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.output = content_of(output);
  result.error = content_of(error);
  return result;
}

}  // namespace pumice::testing
