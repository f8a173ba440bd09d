// The linearised training problem: what training on a part S of the data would have reached, had
// the network been linear in its weights.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pumice/forgetting/dual_solve.h"
#include "pumice/forgetting/iteration_estimate.h"
#include "pumice/forgetting/loss.h"
#include "pumice/forgetting/solve_goals.h"
#include "pumice/linalg/conjugate_gradients.h"
#include "pumice/linearization/example_stream.h"
#include "pumice/linearization/kernel_plan.h"
#include "pumice/linearization/kernel_tiles.h"

namespace pumice {

enum class Solver {
  // Whichever the forecast says is faster within the memory budget.
  automatic,
  // The kernel Θ, factorised: memory (N·c)², one kernel serves all parts S and all methods.
  dense,
  // Conjugate gradients in weight space: memory a few p and one batch, whatever N; 5/3 of a
  // training epoch an iteration.
  matrix_free,
};
Solver solver_named(const std::string& name);  // throws Error with the known names
std::string solver_name(Solver solver);        // "auto", "dense", "matrix-free"

// A solve by conjugate gradients on its way: what is needed to go on from there.
struct SolveIterate {
  std::string solve;           // which one: a name, and a digest of all that its answer depends on
  std::int64_t iteration = 0;  // that led here
  at::Tensor solution;         // p, in the precision of the weights
};

// Keeps the last iterate of each solve of a run, so that a run that was killed goes on from it.
class IterateStore {
 public:
  virtual ~IterateStore() = default;
  // After every iteration, and at the end. May throw to give up. With several processes all of them
  // call it, with the same values; one that keeps them is enough.
  virtual void save(const SolveIterate& iterate) = 0;
  // The last one that was kept of this solve; none: begin with zero. With several processes, what
  // the first one says counts for all.
  virtual std::optional<SolveIterate> restore(const std::string& solve) = 0;
};

// Where a solve by conjugate gradients is.
struct SolveProgress {
  std::string what;
  std::int64_t iteration = 0;
  double relative_residual = 0;
  double seconds = 0;
};

struct LinearProblemOptions {
  // What a solve may take: kernel and factors, or vectors and one batch. Default: half of what is
  // free.
  std::optional<std::int64_t> memory = {};
  // Conjugate gradients stop at |r|/√μ <= error_tolerance·|x|_A, which bounds the relative error in
  // the norm of A (conjugate_gradients.h), and, if it is set, at |r| <= relative_tolerance·|b|.
  double error_tolerance = 1e-3;
  std::optional<double> relative_tolerance = {};
  std::int64_t max_iterations = 500;
  // Examples of the Woodbury preconditioner, 0 for none. Default: what takes the least work by the
  // estimate of iterations.
  std::optional<std::int64_t> preconditioner = {};
  // Several processes (example_stream.h): which examples are this one's own, and how a tensor is
  // replaced by its sum over all of them. Every sum over examples without the kernel goes through
  // ExampleStream::sum(), which calls it. The kernel's rows are split between them and gathered by
  // the first, which alone solves with it and tells the others its coefficients.
  Shard shard = {};
  std::function<void(at::Tensor&)> sum_over_processes = {};
  GatherTiles gather_tiles = {};     // for the kernel, if there are several
  IterateStore* iterates = nullptr;  // none: nothing is kept
  // Told what is being computed and which share of it is done; may throw to give up.
  std::function<void(const std::string& what, double share)> progress = {};
  // Told after each iteration of conjugate gradients.
  std::function<void(const SolveProgress&)> iterated = {};
};

// How the loss enters one solve.
struct LinearModel {
  Curvature curvature = Curvature::identity;
  double decay = 0;  // the ridge is |S|·decay, > 0
  // The residual of the linear model at the centre is r − H J u. The paper leaves H J u out.
  bool displaced = true;
  Solver solver = Solver::dense;
};

// How a solve went: of the worse one where two were needed.
struct SolveReport {
  bool converged = true;
  double relative_residual = 0;
  std::optional<double> condition_estimate = {};  // dense
  std::optional<std::int64_t> iterations = {};    // matrix-free, of all solves together
  std::optional<double> error_bound = {};  // matrix-free: of |x − A⁻¹b|_A / |x|_A, from |r|/√μ
  // Matrix-free: whether the error is as small as the shift asks for (solve_goals.h).
  std::optional<bool> near_enough = {};
  std::optional<std::int64_t> preconditioner = {};  // matrix-free: its examples, 0: none
  std::string explanation = {};                     // of a failure
  bool out_of_iterations = false;                   // matrix-free: why it failed; more would help
};

// u = w − centre. Linearised at w, the regularised objective on S has its minimum at
//   centre + wlin(S),   wlin(S) = −J_Sᵀ β_S,   (H_S Θ_SS + |S|λ I) β_S = r_S − H_S J_S u,
// in weight space A_S wlin(S) = −J_Sᵀ (r_S − H_S J_S u) with A_S = J_Sᵀ H_S J_S + |S|λ I.
class LinearProblem {
 public:
  using Positions = std::vector<std::int64_t>;

  // `model` must outlive this object; `centre` has p values. N inputs and N labels.
  LinearProblem(const Model& model, const Weights& weights, InputSource inputs,
                const at::Tensor& labels, const at::Tensor& centre, Loss loss,
                LinearProblemOptions options = {});

  const ExampleStream& stream() const { return stream_; }
  std::int64_t examples() const { return stream_.examples(); }  // N
  std::int64_t classes() const { return stream_.classes(); }    // c
  // At all examples, their inputs side by side in memory: made at the first call.
  const Linearization& linearization() const;
  Loss loss() const { return loss_; }
  const at::Tensor& displacement() const { return displacement_; }  // u, p, float64
  const at::Tensor& labels() const { return labels_; }
  const at::Tensor& logits() const;     // N×c, float64
  const at::Tensor& residual() const;   // r, N×c, float64
  const at::Tensor& displaced() const;  // J u, N×c, float64. One tangent pass.
  const Kernel& kernel() const;  // computed at the first call; only the first process has Θ itself
  bool has_kernel() const { return kernel_.has_value(); }

  struct Displacement {
    at::Tensor value;         // wlin(S), p, float64
    at::Tensor coefficients;  // −β padded with zeros, N×c: value = Jᵀ coefficients; dense only
    SolveReport report;
  };
  Displacement wlin(const std::vector<std::int64_t>& examples, const LinearModel& model) const;

  // wlin(S) − u: the step from w to the minimum of the linear model, which has to know u
  // (model.displaced). In weight space it is solved for on its own,
  //   A_S (wlin(S) − u) = −(J_Sᵀ r_S + |S|λ u),
  // as near as a shift has to be (solve_goals.h): from a converged w it is little beside wlin(S).
  Displacement step(const std::vector<std::int64_t>& examples, const LinearModel& model) const;

  // δ = wlin(retain) − wlin(all), and both. In kernel space δ is one backward pass of the
  // difference of coefficients; in weight space it is solved for on its own,
  //   A_r δ = J_fᵀ (r_f + H_f J_f (wlin(D) − u)) + |f|·λ·wlin(D)
  // (without the displacement: the same with u = 0): a difference of two solutions would lose
  // digits. The bracket ρ is what the linear model leaves of the cohort's residual, little where it
  // fits well; solve_goals.h says how near both solves have to come.
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

  // A few examples, the first ones of an order that is always the same, and what is known of them.
  struct Sample {
    Positions examples;
    at::Tensor theta;      // their kernel, (m·c)×(m·c)
    at::Tensor logits;     // m×c
    at::Tensor displaced;  // J u, m×c; of sample() only
  };
  // From these the number of iterations is estimated: about 1,000 rows; all if there are no more.
  // Computed at the first call.
  const Sample& sample() const;
  std::int64_t sample_size() const;
  // How many examples make the preconditioner of a solve with so many: what takes the least work by
  // the estimate, of none to a fifth of all, within 4,096 rows and a quarter of the memory.
  //
  // Where H differs from example to example (softmax), they are those with the largest trace of H,
  // and stand for themselves: of a model that fits its data a few examples make most of JᵀHJ. Where
  // H is the identity they are drawn, and stand for all.
  std::int64_t preconditioner_size(const LinearModel& model, std::int64_t examples) const;
  // Whether a kernel of their own has to be computed for them, beside that of sample().
  bool needs_own_kernel(const LinearModel& model, std::int64_t preconditioner) const;
  // The sample as a problem of its own.
  SampledProblem sampled(const LinearModel& model, const SampledSolve& solve) const;

  // With several processes: the first one's value, on all of them.
  double as_the_first_process_says(double value) const;

  std::int64_t memory() const;  // the budget
  // What is left of it for the preconditioner's kernel.
  std::int64_t memory_beside_vectors() const;
  // Matrix-free: bytes besides the batch, the preconditioner's kernel included.
  std::int64_t fixed_bytes() const;
  const LinearProblemOptions& options() const { return options_; }

  // FLOPs since begin_count(). What methods share (logits, J u, kernel, sample) is counted once for
  // each of them, whoever computed it, and kernels by their fewest FLOPs: so that what a method
  // takes does not depend on what ran before it, on free memory or on measured speeds.
  void begin_count() const;
  double flops() const { return flops_; }
  double epoch_flops() const;  // of one training epoch on all examples
  // The kernel of so many examples, for plans.
  KernelProblem kernel_problem(std::int64_t examples) const;

 private:
  Displacement wlin_dense(const Positions& examples, const LinearModel& model) const;
  struct SolveGoal {
    std::string what = "conjugate gradients";
    NeededError needed_error = {};         // solve_goals.h
    std::optional<at::Tensor> guess = {};  // where to begin; none: at zero
  };
  Displacement wlin_matrix_free(const Positions& examples, const LinearModel& model,
                                SolveGoal goal) const;
  Displacement step_matrix_free(const Positions& examples, const LinearModel& model) const;
  NeededError near_shift(double ridge) const;
  std::optional<at::Tensor> guess_of_wlin(const Positions& examples, const LinearModel& model,
                                          const at::Tensor& b) const;
  Direction direction_matrix_free(const Positions& cohort, const Positions& retain,
                                  const LinearModel& model) const;
  DualSolution solve_with_kernel(const Positions& examples, const LinearModel& model) const;
  at::Tensor right_side(const LinearModel& model) const;  // r − H J u, N×c
  // A x = b over `examples`, by conjugate gradients.
  SolveReport solve(const Positions& examples, const LinearModel& model, const at::Tensor& b,
                    const SolveGoal& goal, at::Tensor& x) const;
  std::unique_ptr<LinearOperator> preconditioner(const Positions& examples,
                                                 const LinearModel& model,
                                                 SolveReport& report) const;
  bool alike(const LinearModel& model) const;  // H is the same for all examples
  Positions drawn(std::int64_t size) const;    // the first ones of the order of sample()
  Positions most_curved(std::int64_t size, const LinearModel& model) const;
  Sample sampled_kernel(const Positions& examples, std::int64_t memory) const;
  // What a preconditioner is made of: at least so many examples, in an order that does not depend
  // on how many.
  const Sample& representatives(std::int64_t size, const LinearModel& model) const;
  std::int64_t vector_bytes() const;  // of a solve, and what grows with the examples
  std::int64_t sample_bytes(std::int64_t size) const;
  std::int64_t largest_preconditioner() const;
  std::string solve_name(const Positions& examples, const LinearModel& model,
                         const std::string& what) const;
  std::optional<SolveIterate> restored(const std::string& name) const;
  void report(const std::string& what, double share) const;
  void count_passes(double forward_passes, std::size_t examples) const;
  enum class Shared { logits, displaced, kernel, sample, representatives };
  void count_once(Shared part, double flops) const;
  double kernel_flops(std::int64_t examples) const;
  double sample_flops(std::int64_t examples) const;

  ExampleStream stream_;
  at::Tensor labels_;
  at::Tensor displacement_;
  Loss loss_;
  LinearProblemOptions options_;
  mutable std::optional<Linearization> linearization_;
  mutable at::Tensor logits_, residual_, displaced_;
  mutable std::optional<Kernel> kernel_;
  mutable std::optional<Sample> sample_, representatives_;
  mutable std::map<std::string, std::int64_t> preconditioner_sizes_;
  mutable double flops_ = 0;
  mutable std::set<Shared> counted_;
  // What was told last: told again after each batch, since one product may take minutes, and who is
  // told may want to stop.
  struct Told {
    std::string what = "linearising";
    double share = 0;
  };
  std::shared_ptr<Told> told_ = std::make_shared<Told>();
};

// H of the loss, for products with the Jacobian.
LogitCurvature logit_curvature(Loss loss, Curvature curvature);

// The worse of two solves that belong together; iterations are added.
SolveReport worse(const SolveReport& first, const SolveReport& second);

}  // namespace pumice
