// KLOM: how differently unlearned and retrained models answer, one example at a time, as the
// Kullback-Leibler divergence between the two histograms of margins.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/evaluation/readout.h"

namespace pumice {

// What is done about bins without a retrained model, where the divergence would be infinite.
enum class EmptyBins {
  floor,         // q_b ← max(q_b, smoothing) where p_b > 0, then divided by the sum
  pseudo_count,  // both (count + smoothing) / (models + smoothing · bins)
};
std::string empty_bins_text(EmptyBins empty, double smoothing);

struct KlomOptions {
  std::int64_t bins = 20;
  double clip = 100;  // margins are cut to [−clip, clip]
  EmptyBins empty = EmptyBins::floor;
  double smoothing = 1e-5;
  double percentile = 0.95;  // over the examples of a set
  std::int64_t splits = 20;  // of the null value
  std::uint64_t seed = 1;    // stream "klom"
};

// KL(p ‖ q) = Σ_b p_b log(p_b / q_b) in nats, p and q the histograms of `unlearned` and `retrained`
// in `bins` bins of equal width over their joint range after clipping; the last bin holds its right
// end. One value for all models is a single bin: 0. Throws Error for an empty side and for options
// out of range.
double histogram_divergence(const std::vector<double>& unlearned,
                            const std::vector<double>& retrained, const KlomOptions& options = {});

// With few models the number is large even where nothing differs: a bin with an unlearned and no
// retrained model costs its share of log(1/1e-5) = 11.5 nats. So the null value: the retrained
// models in two halves of h = ⌊K_o/2⌋ (at most K_u), one in the role of the unlearned. And
// `matched`, what h of the unlearned models show against the same half: to be compared with `null`,
// while `value`, from all models, is to be compared with no number but its like.
struct Klom {
  std::string set;
  std::int64_t unlearned_models = 0, retrained_models = 0;
  std::vector<double> divergences =
      {};                 // one for each example, from all models, in the order given
  double value = 0;       // their percentile
  std::int64_t half = 0;  // h
  // Percentiles, mean over the splits; interval: smallest and largest. None below 4 retrained
  // models.
  std::optional<Readout> null = {}, matched = {};
  KlomOptions options;
};

// Margins of the examples of one set, which `set` names ("cohort", "retain", "test"): K_u×E and
// K_o×E, float64. Throws Error for fewer than 2 models on a side, shapes that differ, margins that
// are not finite, options out of range. Neither the order of models nor that of examples matters
// (two different models whose sorted margins are the same aside). Cost: (1 + splits)·K·E.
Klom klom(const std::string& set, const at::Tensor& unlearned, const at::Tensor& retrained,
          const KlomOptions& options = {});

// "KLOM on <set>", and null and matched value where there are.
std::vector<Readout> klom_readouts(const Klom& klom);

}  // namespace pumice
