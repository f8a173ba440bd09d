// Progress on standard error: a bar with the time left on a terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pumice {

enum class ProgressMode { automatic, quiet };

// The time left assumes that what remains goes as fast as what was done since this object was made.
class Progress {
 public:
  // `total` steps; a total of 0 means that it is not known (no time left is shown).
  Progress(std::string title, std::int64_t total, ProgressMode mode = ProgressMode::automatic,
           std::int64_t done_before = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `note` is shown behind the bar. Off a terminal, a line is printed at most every ten seconds.
  void update(std::int64_t done, const std::string& note = "");
  // A line of its own that stays, above the bar.
  void line(const std::string& message);
  void finish();

 private:
  void clear();

  std::string title_;
  std::int64_t total_;
  std::int64_t done_before_;
  bool quiet_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_print_;
};

std::string duration_text(double seconds);  // "42 s", "3 min 20 s", "2 h 05 min"

}  // namespace pumice
