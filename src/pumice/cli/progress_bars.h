// Progress of a command that computes several things: one bar for each.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pumice/core/progress.h"

namespace pumice::cli {

class ProgressBars {
 public:
  explicit ProgressBars(bool quiet)
      : mode_(quiet ? ProgressMode::quiet : ProgressMode::automatic) {}

  // Begins another bar when `what` changes. Throws Error if the user interrupted.
  void update(const std::string& what, double share);
  // Shown behind the bar of what is being computed, from the next update on.
  void note(std::string note) { note_ = std::move(note); }
  void finish();
  // For options that want to be told; must not outlive this object.
  std::function<void(const std::string& what, double share)> teller();

 private:
  ProgressMode mode_;
  std::string title_, note_;
  std::unique_ptr<Progress> bar_;
};

}  // namespace pumice::cli
