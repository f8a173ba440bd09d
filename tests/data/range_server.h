// A small HTTP server on 127.0.0.1 that lives as long as this object (and at most a minute).
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "command.h"
#include "temporary_folder.h"

namespace pumice::testing {

class RangeServer {
 public:
  // `mode` as in fixtures/range_server.py.
  RangeServer(const std::filesystem::path& folder, const std::string& mode) {
    const std::string script = std::string(PUMICE_SOURCE_DIR) + "/tests/fixtures/range_server.py";
    std::vector<std::string> words{PUMICE_PYTHON,           script,
                                   folder.string(),         (own_ / "port").string(),
                                   (own_ / "log").string(), mode};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&process_, words[0].c_str(), nullptr, nullptr, arguments.data(), ::environ) !=
        0) {
      throw std::runtime_error("the server cannot be started");
    }
    for (int i = 0; i < 400 && !std::filesystem::exists(own_ / "port"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    port_ = content_of(own_ / "port");
    if (port_.empty()) {
      stop();
      throw std::runtime_error("the server did not start within ten seconds");
    }
  }
  ~RangeServer() { stop(); }
  RangeServer(const RangeServer&) = delete;
  RangeServer& operator=(const RangeServer&) = delete;

  std::string address(const std::string& name) const {
    return "http://127.0.0.1:" + port_ + "/" + name;
  }
  std::string log() const { return content_of(own_ / "log"); }

 private:
  void stop() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  TemporaryFolder own_;
  pid_t process_ = 0;
  std::string port_;
};

}  // namespace pumice::testing
