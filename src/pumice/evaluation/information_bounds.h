// How much about the cohort can still be in a model, in nats: the divergence of what is released
// from what a model retrained without the cohort would have been, both with their noise.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pumice/evaluation/gaussian_divergence.h"
#include "pumice/evaluation/readout.h"
#include "pumice/linearization/linearization.h"
#include "pumice/model/weight_distribution.h"

namespace pumice {

// White-box, for whoever has the weights: KL(N(h, Σ) ‖ N(w(Dr), Σ0)), diagonal, p coordinates.
// Without noise on either side: infinite. Throws Error if names or shapes differ. Cost: O(p).
GaussianDivergence white_box_bound(const WeightDistribution& scrubbed,
                                   const WeightDistribution& reference);

// Which answers the interface gives. Softmax outputs sum to 1 and have rank c − 1, so they are
// written in an orthonormal basis Q (c×(c−1)) of what is orthogonal to (1, …, 1): answers Qᵀπ.
enum class Answers { logits, softmax };
std::int64_t answer_size(Answers answers, std::int64_t classes);  // a: c, or c − 1

struct AnswerOptions {
  Answers answers = Answers::logits;
  std::optional<std::int64_t> memory = {};  // bytes; default: half of what is free
  // Told now and then which share of the work is done; may throw to give up.
  std::function<void(double share)> progress = {};
};

// Answers to q queries when the weights have noise, to first order: mean f_m(x), covariance
// M J Σ Jᵀ Mᵀ with J the Jacobian at the mean m, M = I for logits and Qᵀ(diag π − ππᵀ) for softmax.
// Covariances are zero for deterministic weights.
struct SeparateAnswers {
  at::Tensor mean;        // q×a, float64
  at::Tensor covariance;  // q×a×a, float64: each query by itself
  double rounding = 0;    // ε of the precision that the covariance was computed in
};
struct JointAnswers {
  at::Tensor mean;        // q×a, float64
  at::Tensor covariance;  // (q·a)×(q·a), float64; row = query·a + answer
  double rounding = 0;
};

// inputs q×C×H×W. Cost: the engine's query blocks (one pass, 2·c·T·p FLOPs a query), and its kernel
// with explicit rows. Throws what Linearization throws.
SeparateAnswers separate_answers(const Model& model, const WeightDistribution& weights,
                                 const at::Tensor& inputs, const AnswerOptions& options = {});
// The same at a linearisation that is there, at the mean of the weights.
SeparateAnswers separate_answers(const Linearization& linearization,
                                 const WeightDistribution& weights,
                                 const AnswerOptions& options = {});
JointAnswers joint_answers(const Model& model, const WeightDistribution& weights,
                           const at::Tensor& inputs, const AnswerOptions& options = {});
JointAnswers joint_answers(const Linearization& linearization, const WeightDistribution& weights,
                           const AnswerOptions& options = {});

// τ models an interface that rounds its answers, or adds noise to them: τ²I on both covariances, in
// units of the answers. Off by default; whoever sets it has to say so beside the number.
struct BlackBoxOptions {
  double floor = 0;  // τ >= 0
};

// Black-box, one query each: q divergences of a coordinates. Throws Error unless both sides have
// the same number of queries and answers. A singular covariance (no noise and no floor, or answers
// that do not depend on the weights): infinite, for that query.
std::vector<GaussianDivergence> query_bounds(const SeparateAnswers& scrubbed,
                                             const SeparateAnswers& reference,
                                             const BlackBoxOptions& options = {});

// Black-box, several queries jointly, as a function of their number: result[i] is the bound for the
// first i + 1 queries in the order given; it never decreases. Cost: (q·a)³.
std::vector<GaussianDivergence> bounds_by_query_count(const JointAnswers& scrubbed,
                                                      const JointAnswers& reference,
                                                      const BlackBoxOptions& options = {});
GaussianDivergence joint_bound(const JointAnswers& scrubbed, const JointAnswers& reference,
                               const BlackBoxOptions& options = {});

struct ShiftSplitOptions {
  // Eigenvalues of J Jᵀ at or below tolerance·λ_max count as zero: their directions change no
  // answer by more than √tolerance of what the strongest does. Default: q·c·ε of the precision of
  // the weights.
  std::optional<double> tolerance = {};
  std::optional<std::int64_t> memory = {};
};

// Δw = visible + hidden: the part in the row space of J, which changes the answers to these queries
// (to first order), and the orthogonal rest, which does not. visible = Jᵀ (J Jᵀ)⁺ J Δw.
struct ShiftSplit {
  at::Tensor visible, hidden;  // p, float64; orthogonal, so |Δw|² = |visible|² + |hidden|²
  double norm = 0, visible_norm = 0, hidden_norm = 0;
  std::int64_t rank = 0;  // of J, by the tolerance
  double tolerance = 0;   // that was used
};

// `shift` has p values. Cost: the kernel, its eigenvalues (about 9·(q·c)³), one tangent and one
// backward pass.
ShiftSplit split_shift(const Linearization& linearization, const at::Tensor& shift,
                       const ShiftSplitOptions& options = {});

// For the record: one bound; and a mean over queries with its bootstrap interval.
Readout bound_readout(std::string name, std::string definition, const GaussianDivergence& bound);
Readout mean_bound_readout(std::string name, std::string definition,
                           const std::vector<GaussianDivergence>& bounds,
                           const BootstrapOptions& options = {});

}  // namespace pumice
