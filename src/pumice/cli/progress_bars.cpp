#include "pumice/cli/progress_bars.h"

#include "pumice/core/error.h"
#include "pumice/core/interrupt.h"

namespace pumice::cli {

void ProgressBars::update(const std::string& what, double share) {
  if (interrupted()) fail("interrupted, nothing was written");
  constexpr std::int64_t steps = 1000;
  if (what != title_ || !bar_) {
    finish();
    note_.clear();
    title_ = what;
    bar_ = std::make_unique<Progress>(what, steps, mode_);
  }
  bar_->update(static_cast<std::int64_t>(static_cast<double>(steps) * share), note_);
}

void ProgressBars::finish() {
  if (bar_) bar_->finish();
  bar_.reset();
}

std::function<void(const std::string& what, double share)> ProgressBars::teller() {
  return [this](const std::string& what, double share) { update(what, share); };
}

}  // namespace pumice::cli
