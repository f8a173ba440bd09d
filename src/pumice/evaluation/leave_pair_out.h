// A likelihood-ratio test between two kinds of models, judged only on models that it did not see.
#pragma once

#include <string>
#include <vector>

namespace pumice {

// Where the spread of a margin over models of one kind is taken from.
enum class ShadowVariance {
  pooled,  // one variance for all examples and both kinds: Σ (x − mean)² / degrees of freedom
  per_example,  // its own for each example and kind
};
std::string variance_text(ShadowVariance variance);

// One row for each model, one margin for each example.
using MarginRows = std::vector<std::vector<double>>;

// What n models of one kind say about each example.
struct MarginFit {
  std::vector<double> means;
  std::vector<double> squares;  // Σ (x − mean)² over the n models
  double models = 0;            // n
};
// Of all rows but `without` (all of them: rows.size()), of which there is at least one.
MarginFit fit_margins(const MarginRows& rows, std::size_t without);

// For each example e with margin x_e
//   log N(x_e; m_u, v_u (1 + 1/n_u)) − log N(x_e; m_o, v_o (1 + 1/n_o)),
// u the unlearned models, o those that never saw the example. The factor 1 + 1/n is there since the
// mean of n models is itself uncertain: a new model is that much farther from it. Throws Error
// where a variance is zero.
std::vector<double> log_ratios(const std::vector<double>& margins, const MarginFit& unlearned,
                               const MarginFit& never_saw, ShadowVariance variance);

struct LeavePairOut {
  // Mean over all pairs (i unlearned, j never saw), each scored with the fits of the *other*
  // models, of the area under the curve between the E scores of i and the E scores of j.
  double area = 0;
  // The score of model i for each example, mean over the partners j it was left out with.
  MarginRows unlearned, never_saw;
};

// Pairs, not single models, are left out: if one model is left out alone its own side is fitted
// from one model fewer and lies farther away by just what it would have contributed, which makes
// the area of two equal kinds of models too small (about 0.46 in place of 0.5 with 4 models a side,
// 0.48 with 8). Here i and j face one and the same fit, so that the area has mean 1/2 whenever the
// two kinds are one distribution, however the margins of a model hang together. At least 3 rows on
// each side, of equal length. Cost: K_u·K_o·E·log E.
LeavePairOut leave_pair_out(const MarginRows& unlearned, const MarginRows& never_saw,
                            ShadowVariance variance);

}  // namespace pumice
