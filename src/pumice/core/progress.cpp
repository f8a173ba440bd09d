#include "pumice/core/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "pumice/core/error.h"

namespace pumice {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string two_digits(long value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

}  // namespace

std::string duration_text(double seconds) {
  const long whole = std::lround(seconds);
  if (whole < 60) return text(whole, " s");
  if (whole < 3600) return text(whole / 60, " min ", two_digits(whole % 60), " s");
  return text(whole / 3600, " h ", two_digits(whole / 60 % 60), " min");
}

Progress::Progress(std::string title, std::int64_t total, ProgressMode mode,
                   std::int64_t done_before)
    : title_(std::move(title)),
      total_(total),
      done_before_(done_before),
      quiet_(mode == ProgressMode::quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_print_(start_) {}

Progress::~Progress() {
  finish();
}

void Progress::clear() {
  if (terminal_ && shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::update(std::int64_t done, const std::string& note) {
  if (quiet_) return;
  const double pause = terminal_ ? 0.1 : 10.0;
  const bool last = total_ > 0 && done >= total_;
  if (seconds_since(last_print_) < pause && !(last && terminal_)) return;
  last_print_ = Clock::now();

  std::string shown = title_;
  if (total_ > 0) {
    const double share = static_cast<double>(done) / static_cast<double>(total_);
    if (terminal_) {
      const int width = 24;
      const int filled = std::clamp(static_cast<int>(share * width), 0, width);
      shown += text(" [", std::string(filled, '#'), std::string(width - filled, '.'), "]");
    }
    shown += text(" ", static_cast<int>(100 * share), " %");
    const std::int64_t done_now = done - done_before_;
    if (done_now > 0 && done < total_) {
      const double left = seconds_since(start_) * static_cast<double>(total_ - done) /
                          static_cast<double>(done_now);
      shown += ", " + duration_text(left) + " left";
    }
  } else {
    shown += text(" ", done);
  }
  if (!note.empty()) shown += ", " + note;

  clear();
  std::fputs(shown.c_str(), stderr);
  if (!terminal_) std::fputc('\n', stderr);
  std::fflush(stderr);
  shown_ = terminal_;
}

void Progress::line(const std::string& message) {
  if (quiet_) return;
  clear();
  std::fprintf(stderr, "%s\n", message.c_str());
}

void Progress::finish() {
  clear();
  std::fflush(stderr);
}

}  // namespace pumice
