// The linearised training problem: what training on a part S of the data would have reached, had
// the network been linear in its weights.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pumice/forgetting/dual_solve.h"
#include "pumice/forgetting/loss.h"
#include "pumice/linalg/conjugate_gradients.h"
#include "pumice/linearization/linearization.h"

namespace pumice {

enum class Solver {
  dual,  // the kernel Θ, factorised: memory (N·c)², one kernel serves all parts S and all methods
  primal,  // conjugate gradients in weight space: memory a few p, one epoch and a half an iteration
};
Solver solver_named(const std::string& name);  // throws Error with the known names
std::string solver_name(Solver solver);

struct LinearProblemOptions {
  std::optional<std::int64_t> memory = {};  // for the kernel; default: half of what is free
  double relative_tolerance = 1e-6;         // of conjugate gradients
  std::int64_t max_iterations = 500;
  // Told what is being computed and which share of it is done; may throw to give up.
  std::function<void(const std::string& what, double share)> progress = {};
};

// How the loss enters one solve.
struct LinearModel {
  Curvature curvature = Curvature::identity;
  double decay = 0;  // the ridge is |S|·decay, > 0
  // The residual of the linear model at the centre is r − H J u. The paper leaves H J u out.
  bool displaced = true;
  Solver solver = Solver::dual;
};

// How a solve went: of the worse one where two were needed.
struct SolveReport {
  bool converged = true;
  double relative_residual = 0;
  std::optional<double> condition_estimate = {};  // dual
  std::optional<std::int64_t> iterations = {};    // primal
  std::string explanation = {};                   // of a failure
};

// u = w − centre. Linearised at w, the regularised objective on S has its minimum at
//   centre + wlin(S),   wlin(S) = −J_Sᵀ β_S,   (H_S Θ_SS + |S|λ I) β_S = r_S − H_S J_S u,
// in weight space A_S wlin(S) = −J_Sᵀ (r_S − H_S J_S u) with A_S = J_Sᵀ H_S J_S + |S|λ I.
class LinearProblem {
 public:
  // `model` must outlive this object; `centre` has p values. inputs N×C×H×W, labels N.
  LinearProblem(const Model& model, const Weights& weights, const at::Tensor& inputs,
                const at::Tensor& labels, const at::Tensor& centre, Loss loss,
                LinearProblemOptions options = {});

  const Linearization& linearization() const { return linearization_; }
  Loss loss() const { return loss_; }
  const at::Tensor& displacement() const { return displacement_; }  // u, p, float64
  const at::Tensor& labels() const { return labels_; }
  const at::Tensor& logits() const;     // N×c
  const at::Tensor& residual() const;   // r, N×c, float64
  const at::Tensor& displaced() const;  // J u, N×c, float64. One tangent pass.
  const Kernel& kernel() const;         // computed at the first call
  bool has_kernel() const { return kernel_.has_value(); }

  struct Displacement {
    at::Tensor value;         // wlin(S), p, float64
    at::Tensor coefficients;  // −β padded with zeros, N×c: value = Jᵀ coefficients; dual only
    SolveReport report;
  };
  Displacement wlin(const std::vector<std::int64_t>& examples, const LinearModel& model) const;

  // δ = wlin(retain) − wlin(all), and both. In kernel space δ is one backward pass of the
  // difference of coefficients; in weight space it is solved for on its own,
  //   A_r δ = J_fᵀ (r_f + H_f J_f (wlin(D) − u)) + |f|·λ·wlin(D)
  // (without the displacement: the same with u = 0): a difference of two solutions would lose
  // digits.
  struct Direction {
    at::Tensor value;  // δ, p, float64
    at::Tensor coefficients;
    Displacement retain, all;
    SolveReport report;
  };
  Direction direction(const std::vector<std::int64_t>& cohort,
                      const std::vector<std::int64_t>& retain, const LinearModel& model) const;

  // Jᵀ x over all examples, N×c → p, float64.
  at::Tensor pull(const at::Tensor& coefficients) const;

  double flops() const { return flops_; }  // spent so far
  double epoch_flops() const;              // of one training epoch on all examples

 private:
  Displacement wlin_dual(const std::vector<std::int64_t>& examples, const LinearModel& model) const;
  Displacement wlin_primal(const std::vector<std::int64_t>& examples,
                           const LinearModel& model) const;
  at::Tensor right_side(const LinearModel& model) const;  // r − H J u, N×c
  SolveReport solve_primal(const Linearization& part, const at::Tensor& root, double ridge,
                           const at::Tensor& b, const std::string& what, at::Tensor& x) const;
  Linearization part(const std::vector<std::int64_t>& examples) const;
  at::Tensor root(const LinearModel& model) const;
  void report(const std::string& what, double share) const;

  Linearization linearization_;
  at::Tensor labels_;
  at::Tensor displacement_;
  Loss loss_;
  LinearProblemOptions options_;
  mutable at::Tensor logits_, residual_, displaced_;
  mutable std::optional<Kernel> kernel_;
  mutable double flops_ = 0;
};

}  // namespace pumice
