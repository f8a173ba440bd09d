// Is a number what a retrained model would have given?
#pragma once

#include <optional>
#include <string>
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

// How far two values of a readout are apart.
enum class Scale {
  additive,        // by their difference: shares
  multiplicative,  // by their ratio: what is positive without a limit above (nats, distances)
  shortfall,       // by the difference of what is missing to 1: shares that are 1 at best
};

struct Yardstick {
  double resolution = 0;  // smaller differences are not worth a verdict
  Scale scale = Scale::additive;
  // The value is a comparison with the retrained models, and a retrained model's own one is that
  // with the others.
  bool compares = false;
};

// What the values of k retrained models say of one more.
//
// Like them is the range [low, high] of the k values, widened on each side by its own width, and at
// least by the resolution; by a quarter of their mean if they are comparisons.
//
// By chance one more retrained model lies in [least, most] with 95 % probability: Student's
// prediction interval
//   m ± t(k−1) · s · √(1 + 1/k),   m, s: mean and standard deviation of the k values,
// of log(value + resolution) if the scale is multiplicative; it holds the former range at least.
// Values that are comparisons differ by less than a new one does: that of model i is
// μ + a_i + mean of the others' a, in which a_i weighs 1 − 1/(k−1), but 1 in a new model's. So s is
// multiplied by (k−1)/(k−2). Two models are a single pair, of which there is no s: chance then
// reaches from a quarter of m to four times m (a third model was found four times as far away as
// the first two were from each other).
//
// On the scale `shortfall` all this is said of 1 − value, and turned back into shares, in [0, 1].
struct ReferenceBand {
  double low = 0, high = 0;
  double least = 0, most = 0;
};
// None for fewer than two values or one that is not finite.
std::optional<ReferenceBand> reference_band(const std::vector<double>& references,
                                            const Yardstick& yardstick);

struct Judgement {
  Verdict verdict = Verdict::cannot_tell;
  std::string because = {};  // one sentence with the numbers
  std::optional<ReferenceBand> band = {};
  bool alone = false;  // leaks or over-forgotten so clearly that it needs no second readout
};

// A value in [low, high] is like retrained. One that chance may explain, in [least, most] or with
// an interval of its own that reaches into it, cannot tell; else leaks or over-forgotten by `side`.
// Readouts that are small or large when good have one bad side only; a value beyond `low` or `high`
// on the good side is like retrained. A value that is not finite: cannot tell, for the readout's
// own reason.
Judgement judge(const Readout& readout, const std::vector<double>& references,
                const Yardstick& yardstick, LeakSide side);
// The same with a band that is known.
Judgement judge(const Readout& readout, const ReferenceBand& band, LeakSide side);

struct NamedJudgement {
  std::string name;
  std::string group;  // readouts of one group look at the same thing, and err together
  Judgement judgement;
};

// All readouts in one sentence. One readout in twenty of an honestly retrained model is outside
// [least, most] by chance, so a single one decides only if it is outside by so much that chance
// does it in one of two hundred (`alone`), or if no other group was judged: `leaks` takes readouts
// of two groups or one `alone`, else `over-forgotten` takes the same. With fewer of either kind,
// cannot tell. Like retrained if none is outside and at least half of all are like retrained.
struct OverallVerdict {
  Verdict verdict = Verdict::cannot_tell;
  std::string sentence;
};
OverallVerdict overall(const std::vector<NamedJudgement>& judgements);

}  // namespace pumice
