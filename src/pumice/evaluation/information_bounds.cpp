#include "pumice/evaluation/information_bounds.h"

#include <algorithm>
#include <cmath>

#include "pumice/core/error.h"

namespace pumice {
namespace {

// Orthonormal columns orthogonal to (1, …, 1): Helmert's, c×(c−1). Column j is
// (1, …, 1, −(j+1), 0, …, 0)/√((j+1)(j+2)) with j + 1 ones.
at::Tensor contrast_basis(std::int64_t classes) {
  at::Tensor basis = at::zeros({classes, classes - 1}, at::kDouble);
  for (std::int64_t j = 0; j + 1 < classes; ++j) {
    const auto ones = static_cast<double>(j + 1);
    const double scale = 1 / std::sqrt(ones * (ones + 1));
    basis.select(1, j).narrow(0, 0, j + 1).fill_(scale);
    basis[j + 1][j] = -ones * scale;
  }
  return basis;
}

// Mean answers, and the derivative M of each query's answers with respect to its logits (q×a×c),
// none if it is the identity.
struct AnswerMap {
  at::Tensor mean;
  std::optional<at::Tensor> derivative;
};

// logits: q×c in float64.
AnswerMap answer_map(const at::Tensor& logits, Answers answers) {
  if (answers == Answers::logits) return {logits, {}};
  if (logits.size(1) < 2) fail("answers: softmax of one class is constant, ask for logits");
  const at::Tensor basis = contrast_basis(logits.size(1));
  const at::Tensor shares = logits.softmax(1);
  // Qᵀ(diag π − ππᵀ): row j of Qᵀ times π, minus (Qᵀπ)_j π.
  const at::Tensor mean = shares.mm(basis);
  const at::Tensor derivative =
      basis.t().unsqueeze(0) * shares.unsqueeze(1) - mean.unsqueeze(2) * shares.unsqueeze(1);
  return {mean, derivative};
}

void check_answers(const at::Tensor& own, const at::Tensor& reference, double floor) {
  if (own.sizes() != reference.sizes()) {
    fail("bound: answers of shape ", own.sizes(), " and ", reference.sizes(),
         ", must be to the same queries and of the same kind");
  }
  if (!(floor >= 0) || !std::isfinite(floor)) fail("floor: ", floor, ", must be >= 0");
}

at::Tensor with_floor(const at::Tensor& covariance, double floor) {
  if (floor == 0) return covariance;
  return covariance + floor * floor * at::eye(covariance.size(-1), at::kDouble);
}

// Products of the same two rows in another order differ by rounding, and by that alone.
at::Tensor symmetrized(const at::Tensor& covariance) {
  return (covariance + covariance.transpose(-1, -2)) / 2;
}

}  // namespace

GaussianDivergence white_box_bound(const WeightDistribution& scrubbed,
                                   const WeightDistribution& reference) {
  if (!(*scrubbed.mean.layout == *reference.mean.layout)) {
    fail("bound: the two models have different parameters (", scrubbed.mean.layout->total(),
         " and ", reference.mean.layout->total(),
         " values); the reference must be of the same architecture");
  }
  const std::int64_t size = scrubbed.mean.layout->total();
  if (scrubbed.deterministic() || reference.deterministic()) {
    return infinite_divergence(
        size, text("the weights of ", scrubbed.deterministic() ? "the model" : "the reference",
                   " have no noise"));
  }
  return diagonal_divergence(
      scrubbed.mean.flat.to(at::kDouble) - reference.mean.flat.to(at::kDouble), scrubbed.variance,
      reference.variance);
}

std::int64_t answer_size(Answers answers, std::int64_t classes) {
  return answers == Answers::softmax ? classes - 1 : classes;
}

SeparateAnswers separate_answers(const Model& model, const WeightDistribution& weights,
                                 const at::Tensor& inputs, const AnswerOptions& options) {
  return separate_answers(Linearization(model, weights.mean, inputs), weights, options);
}

SeparateAnswers separate_answers(const Linearization& linearization,
                                 const WeightDistribution& weights, const AnswerOptions& options) {
  const double rounding = rounding_of(weights.mean.flat.scalar_type());
  if (weights.deterministic()) {
    const AnswerMap map = answer_map(linearization.logits().to(at::kDouble), options.answers);
    const std::int64_t size = map.mean.size(1);
    return {map.mean, at::zeros({linearization.examples(), size, size}, at::kDouble), rounding};
  }
  const NoisyAnswers noisy = linearization.noisy_answers(
      weights.variance, {.memory = options.memory, .progress = options.progress});
  const AnswerMap map = answer_map(noisy.logits, options.answers);
  const at::Tensor covariance =
      map.derivative ? map.derivative->bmm(noisy.covariance).bmm(map.derivative->transpose(1, 2))
                     : noisy.covariance;
  return {map.mean, symmetrized(covariance), rounding};
}

JointAnswers joint_answers(const Model& model, const WeightDistribution& weights,
                           const at::Tensor& inputs, const AnswerOptions& options) {
  return joint_answers(Linearization(model, weights.mean, inputs), weights, options);
}

JointAnswers joint_answers(const Linearization& linearization, const WeightDistribution& weights,
                           const AnswerOptions& options) {
  const AnswerMap map = answer_map(linearization.logits().to(at::kDouble), options.answers);
  const std::int64_t rows = map.mean.numel();
  JointAnswers result{
      .mean = map.mean, .covariance = {}, .rounding = rounding_of(weights.mean.flat.scalar_type())};
  if (weights.deterministic()) {
    result.covariance = at::zeros({rows, rows}, at::kDouble);
  } else {
    result.covariance = linearization
                            .kernel({.memory = options.memory,
                                     .variance = weights.variance,
                                     .seeds = map.derivative,
                                     .progress = options.progress})
                            .theta;
  }
  return result;
}

std::vector<GaussianDivergence> query_bounds(const SeparateAnswers& scrubbed,
                                             const SeparateAnswers& reference,
                                             const BlackBoxOptions& options) {
  check_answers(scrubbed.mean, reference.mean, options.floor);
  const at::Tensor differences = scrubbed.mean - reference.mean;
  const at::Tensor own = with_floor(scrubbed.covariance, options.floor);
  const at::Tensor other = with_floor(reference.covariance, options.floor);
  const DenseDivergenceOptions tolerance =
      tolerance_of_entries(std::max(scrubbed.rounding, reference.rounding), differences.size(1));
  std::vector<GaussianDivergence> bounds;
  for (std::int64_t i = 0; i < differences.size(0); ++i) {
    bounds.push_back(dense_divergence(differences[i], own[i], other[i], tolerance));
  }
  return bounds;
}

std::vector<GaussianDivergence> bounds_by_query_count(const JointAnswers& scrubbed,
                                                      const JointAnswers& reference,
                                                      const BlackBoxOptions& options) {
  check_answers(scrubbed.mean, reference.mean, options.floor);
  const at::Tensor difference = (scrubbed.mean - reference.mean).reshape({-1});
  return nested_divergences(
      difference, with_floor(scrubbed.covariance, options.floor),
      with_floor(reference.covariance, options.floor), scrubbed.mean.size(1),
      tolerance_of_entries(std::max(scrubbed.rounding, reference.rounding), difference.numel()));
}

GaussianDivergence joint_bound(const JointAnswers& scrubbed, const JointAnswers& reference,
                               const BlackBoxOptions& options) {
  return bounds_by_query_count(scrubbed, reference, options).back();
}

ShiftSplit split_shift(const Linearization& linearization, const at::Tensor& shift,
                       const ShiftSplitOptions& options) {
  const at::Tensor wide = shift.to(at::kDouble);
  ShiftSplit split;
  split.tolerance =
      options.tolerance.value_or(static_cast<double>(linearization.rows()) *
                                 rounding_of(linearization.weights().flat.scalar_type()));
  if (!(split.tolerance >= 0 && split.tolerance < 1)) {
    fail("tolerance: ", split.tolerance, ", must be in [0, 1)");
  }
  const at::Tensor answers = linearization.jvp(wide).to(at::kDouble).reshape({-1});
  const at::Tensor theta = linearization.kernel({.memory = options.memory}).theta;
  const auto [eigenvalues, vectors] = at::linalg_eigh(theta);
  const at::Tensor kept = eigenvalues.gt(split.tolerance * eigenvalues[-1].clamp_min(0));
  split.rank = kept.sum().item<std::int64_t>();
  const at::Tensor inverse = at::where(kept, eigenvalues.reciprocal(), at::zeros_like(eigenvalues));
  const at::Tensor coefficients = vectors.mv(inverse * vectors.t().mv(answers));
  split.visible =
      linearization.vjp(coefficients.view({linearization.examples(), linearization.classes()}))
          .to(at::kDouble);
  split.hidden = wide - split.visible;
  split.norm = wide.norm().item<double>();
  split.visible_norm = split.visible.norm().item<double>();
  split.hidden_norm = split.hidden.norm().item<double>();
  return split;
}

Readout bound_readout(std::string name, std::string definition, const GaussianDivergence& bound) {
  return {.name = std::move(name),
          .unit = "nats",
          .definition = std::move(definition),
          .direction = ReadoutDirection::small,
          .value = bound.nats(),
          .reason = bound.reason};
}

Readout mean_bound_readout(std::string name, std::string definition,
                           const std::vector<GaussianDivergence>& bounds,
                           const BootstrapOptions& options) {
  std::vector<double> values;
  for (const GaussianDivergence& bound : bounds) values.push_back(bound.nats());
  Readout readout = mean_readout(std::move(name), "nats", std::move(definition),
                                 ReadoutDirection::small, values, options);
  const auto infinite =
      std::find_if(bounds.begin(), bounds.end(),
                   [](const GaussianDivergence& bound) { return !bound.finite(); });
  if (infinite != bounds.end()) readout.reason += "; the first: " + infinite->reason;
  return readout;
}

}  // namespace pumice
