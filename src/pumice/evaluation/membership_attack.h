// Who was in the training set? Two attacks that answer from a model's outputs.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/evaluation/readout.h"

namespace pumice {

// −Σ_y π_y log π_y in nats, for each example: logits N×c → N values, float64.
std::vector<double> softmax_entropies(const at::Tensor& logits);

// f_y − log Σ_{k≠y} exp f_k, the log-odds of the true class: logits N×c, labels N → N values.
// Throws Error for fewer than two classes.
std::vector<double> margins(const at::Tensor& logits, const at::Tensor& labels);

// min over f of ½|f|² + C Σ max(0, 1 − y_i (f(x_i) − ρ)), kernel exp(−γ (x − x')²), by libsvm.
struct SupportVectorOptions {
  double cost = 3;          // C
  double gamma = 1;         // γ = 1 / number of features
  double tolerance = 1e-3;  // of the optimality conditions
};

// f(x) = Σ_i coefficients_i exp(−γ (x − support_i)²) − offset; positive: called a member.
struct SupportVectorClassifier {
  std::vector<double> support = {};
  std::vector<double> coefficients =
      {};             // y_i α_i with 0 < α_i <= C; y = 1 for members, −1 for others
  double offset = 0;  // ρ
  double gamma = 1;

  double decision(double feature) const;
};

// One feature each. Both lists are sorted first: the solver's steps, and so its rounding, would
// depend on their order. Throws Error for fewer than two values on either side, for values that are
// not finite and for options out of range. Cost: between n² and n³ of the number of values.
SupportVectorClassifier train_classifier(std::vector<double> members, std::vector<double> others,
                                         const SupportVectorOptions& options = {});

// The classifier learns to tell retained examples (members) from test examples by the entropy of
// their softmax outputs, and is then asked about the cohort.
struct EntropyAttack {
  SupportVectorClassifier classifier;
  std::int64_t called_members = 0, cohort = 0;
  // How well the attack works at all: shares of its own training examples that it gets right.
  double retain_recognised = 0, test_recognised = 0;
};

// Logits, each N×c. Throws Error for an empty cohort, and as train_classifier.
EntropyAttack entropy_attack(const at::Tensor& cohort, const at::Tensor& retain,
                             const at::Tensor& test, const SupportVectorOptions& options = {});
Readout entropy_attack_readout(const EntropyAttack& attack);  // share of the cohort called members

// Calls a member whoever scores at or above a threshold.
struct RocPoint {
  double threshold = 0;
  double false_positive_rate = 0;  // share of non-members at or above it
  double true_positive_rate = 0;   // share of members at or above it
};

struct ThresholdAttack {
  // From (0, 0) to (1, 1), one for each distinct score, thresholds falling; the first threshold is
  // infinite.
  std::vector<RocPoint> curve;
  std::int64_t members = 0, others = 0;
  // Area under the curve: the chance that a member scores above a non-member, ties half.
  double area = 0;

  // The best true positive rate among the points with at most this false positive rate. Nothing is
  // interpolated: with n < 100 non-members, 1 % means none of them.
  double true_positive_rate_at(double false_positive_rate) const;
};

// Scores (margins, say) of members and of non-members. Throws Error for an empty side, and for
// scores that are not a number. Cost: n log n.
ThresholdAttack threshold_attack(const std::vector<double>& members,
                                 const std::vector<double>& others);

// Newcombe's score interval for an area under the curve (his method 5): all θ with
//   |area − θ| <= z √V(θ),   V = θ(1−θ) [1 + (s − 1)((1−θ)/(2−θ) + θ/(1+θ))] / (m n),  s = (m+n)/2.
// Like Wilson's for shares it is not empty at 0 and 1.
Interval area_interval(double area, std::int64_t members, std::int64_t others,
                       double confidence = 0.95);

// "area under the curve" and "true positive rate at 1 % false positive rate". `members` says whose
// margins were attacked.
std::vector<Readout> threshold_attack_readouts(const ThresholdAttack& attack,
                                               const std::string& members = "the cohort");

}  // namespace pumice
