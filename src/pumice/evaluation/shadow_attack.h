// Was this example trained on and then scrubbed, or never seen? A likelihood-ratio attack with
// shadow models (U-LiRA): the attacker has models of both kinds, and judges each example by itself.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/evaluation/leave_pair_out.h"
#include "pumice/evaluation/membership_attack.h"
#include "pumice/evaluation/readout.h"
#include "pumice/evaluation/shadow_margins.h"

namespace pumice {

struct ShadowAttackOptions {
  // None: per example where both sides have `per_example_from` models, pooled otherwise. A variance
  // from n models is off by a share √(2/(n−1)): 25 % at 32 models, as much as itself at 3. The
  // pooled one hardly sees a difference that lies in the spread alone.
  std::optional<ShadowVariance> variance = {};
  std::int64_t per_example_from = 32;
  double confidence = 0.95;
  std::int64_t relabellings = 199;  // for the test against "no difference"; 0: none
  std::uint64_t seed = 1;           // stream "relabelling"
};

// How well the attack tells the two kinds of shadow models apart, each model scored by fits that it
// is no part of (leave_pair_out.h). A score > 0 says "trained on and scrubbed".
struct ShadowAttack {
  std::int64_t unlearned_models = 0, never_saw_models = 0, examples = 0;
  ShadowVariance variance = ShadowVariance::pooled;

  double area = 0;
  // Pairs from one model are not independent, and all pairs share the fits: each model in turn is
  // taken out altogether (fits, scores and all), and with θ₋ᵢ the value without it
  //   value ± t √( Σ_sides (K−1)/K Σ_i (θ₋ᵢ − mean θ₋)² ),  t: Student, min(K_u, K_o) − 1 degrees,
  // cut to [0, 1]. In simulations it held the truth in 90 to 100 % of cases where it promises 95;
  // resampling models with their scores held fixed looks past the shared fits and held it in as few
  // as 44 %. None below 4 models on a side.
  std::optional<Interval> area_interval = {};

  // Over all (model, example) pairs, members: the unlearned models'; scores as in LeavePairOut. Its
  // own area compares scores of different fits: `area` above is the one to quote.
  ThresholdAttack pairs = {};
  std::optional<Interval> rate_interval = {};  // of the true positive rate at 1 %, made likewise

  // If unlearning leaves no trace, the models are exchangeable: the share of labellings (the true
  // one, and `relabellings` random ones; all there are, if there are no more) that give an area as
  // large. Exact for any number of models and any dependence between examples, as long as the
  // models are independent of each other. Never below one over the number of labellings, 1/35 with
  // 3 and 4 models; twice that with equally many, since to exchange the sides changes no area: 1/10
  // with 3 and 3, 1/35 with 4 and 4.
  std::optional<double> chance = {};

  at::Tensor unlearned_scores = {}, never_saw_scores = {};  // K_u×E, K_o×E, in the order given

  std::string brief() const;  // one line
};

// Throws Error for fewer than 3 models on a side (a mean and a spread need two when a pair is left
// out; with a variance for each example 5, which leaves it three even within the interval), for
// shapes that differ, for margins that are not finite or do not vary, and for options out of range.
// Neither the order of models nor that of examples matters, to the bit (two different models whose
// sorted margins are the same aside). Cost: K_u·K_o·E·log E, times 1 + K_u + K_o + relabellings.
ShadowAttack shadow_attack(const MarginTable& shadows, const ShadowAttackOptions& options = {});

// Area under the curve, true positive rate at 1 % false positive rate and, if tested, the chance.
std::vector<Readout> shadow_attack_readouts(const ShadowAttack& attack);

// The same attack on the one model that is released, fitted from all shadow models.
struct ReleasedAttack {
  std::vector<double> log_ratios = {};  // E, in the order given
  std::int64_t called = 0;              // of which > 0
  std::int64_t unlearned_models = 0, never_saw_models = 0;
  ShadowVariance variance = ShadowVariance::pooled;
};

// `released`: E margins, float64, of a model that is none of the shadows. Throws Error for fewer
// than 2 models on a side (5 with a variance for each example), otherwise as shadow_attack. Cost:
// (K_u + K_o)·E.
ReleasedAttack released_attack(const MarginTable& shadows, const at::Tensor& released,
                               const ShadowAttackOptions& options = {});

// Mean log-likelihood ratio, and share of the examples called "was trained on". The rows of
// ShadowAttack::never_saw_scores show what models that never saw the examples get.
std::vector<Readout> released_attack_readouts(const ReleasedAttack& attack,
                                              const BootstrapOptions& options = {});

}  // namespace pumice
