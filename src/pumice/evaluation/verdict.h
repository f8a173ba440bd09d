// Is a number what a retrained model would have given?
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pumice/evaluation/readout.h"

namespace pumice {

enum class Verdict {
  like_retrained,
  leaks,           // the model still shows that it knew the cohort
  over_forgotten,  // it differs on the other side (the Streisand effect, or damage)
  cannot_tell,     // no two references, no finite value, or an interval too wide to decide
};
std::string verdict_text(Verdict verdict);  // "like retrained", "leaks", …

// On which side of the retrained models' values a readout speaks of leaking.
enum class LeakSide { below, above };

// Where retrained models' own values lie: their range, widened on each side by its own width, and
// at least by `resolution` (one example of a share, say). The width is the yardstick, so two values
// are the least: with one, nothing is known of what retraining leaves to chance.
struct ReferenceBand {
  double low = 0, high = 0;
};
std::optional<ReferenceBand> reference_band(const std::vector<double>& references,
                                            double resolution);

struct Judgement {
  Verdict verdict = Verdict::cannot_tell;
  std::string because;  // one sentence with the numbers
  std::optional<ReferenceBand> band = {};
};

// A value inside the band is like retrained. Outside, its interval decides (without one: the value
// ± the width of the references' range, for what chance does to a retrained model it does to this
// one): if that reaches into the band, cannot tell; else leaks or over-forgotten by `side`.
// Readouts that are small or large when good have one bad side only; a value beyond the band on the
// good side is like retrained. A value that is not finite: cannot tell, for the readout's own
// reason.
Judgement judge(const Readout& readout, const std::vector<double>& references, double resolution,
                LeakSide side);

// All readouts in one sentence: leaks before over-forgotten before like retrained; cannot tell if
// no readout could be judged.
struct OverallVerdict {
  Verdict verdict = Verdict::cannot_tell;
  std::string sentence;
};
OverallVerdict overall(const std::vector<std::pair<std::string, Verdict>>& verdicts_by_name);

}  // namespace pumice
