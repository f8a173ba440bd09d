// The paper's scrub. Linearised at w(D) (or w0), H → I (or the softmax's),
//   wlin(S) = −J_Sᵀ (H_S Θ_SS + |S|λ I)⁻¹ r_S,   δ = wlin(Dr) − wlin(D),   h(w) = w + scale·δ,
// with the two ridges N·λ and Nr·λ. The trapezium trick stretches δ:
//   e = u − wlin(Dr),  k = cos∠(δ, e)
//   |δ'| = |δ| + 2·sin(arccos(k) − π/2)·|e|  for k < 0,   |δ| + 2·k·|e|  for k >= 0,
//   scale = |δ'|/|δ|.
// For k < 0 the sine is −k as well, so both lines say |δ| + 2·|k|·|e|.
#include <cmath>
#include <numbers>

#include "pumice/forgetting/forgetting_method.h"

namespace pumice {
namespace {

TrapeziumSummary trapezium(const at::Tensor& direction, const at::Tensor& error) {
  TrapeziumSummary summary;
  const double length = direction.norm().item<double>();
  summary.error_norm = error.norm().item<double>();
  if (length == 0 || summary.error_norm == 0) {
    summary.scale = 1;
    return summary;
  }
  summary.cosine = direction.dot(error).item<double>() / (length * summary.error_norm);
  summary.angle = std::acos(std::clamp(summary.cosine, -1.0, 1.0));
  const double share =
      summary.cosine < 0 ? std::sin(summary.angle - std::numbers::pi / 2) : std::cos(summary.angle);
  summary.scale = (length + 2 * share * summary.error_norm) / length;
  return summary;
}

class Ntk final : public ForgettingMethod {
 public:
  explicit Ntk(MethodOptions options) : options_(std::move(options)) {}

  ShiftResult shift(const ForgettingTask& task, SharedProblems& shared) const override {
    ShiftResult result{.weights = {task.weights.layout, {}}, .summary = {}};
    ForgettingSummary& summary = result.summary;
    SummaryClock clock(task, summary);
    const bool at_start = options_.linearize_at == LinearizeAt::start;
    const LinearProblem& problem = at_start ? shared.at_start() : shared.at_weights();
    summary.shared_kernel = problem.has_kernel();
    const double flops_before = problem.flops();
    const LinearModel model{.curvature = options_.curvature.value_or(Curvature::identity),
                            .decay = options_.ridge.value_or(task.weight_decay),
                            .displaced = false,
                            .solver = options_.solver.value_or(Solver::dual)};
    summary.ridge = model.decay;
    summary.curvature = curvature_name(model.curvature);
    summary.linearized_at = at_start ? "start" : "weights";
    summary.solver = solver_name(model.solver);
    summary.slow_parameters = problem.linearization().without_rule();
    const LinearProblem::Direction direction =
        problem.direction(task.split.cohort, task.split.retain, model);
    take(direction.report, summary);
    if (direction.value.defined()) {
      summary.direction_norm = direction.value.norm().item<double>();
      const at::Tensor u = task.weights.flat.to(at::kDouble) - task.centre.to(at::kDouble);
      const TrapeziumSummary stretched = trapezium(direction.value, u - direction.retain.value);
      summary.scale = options_.scale.value_or(options_.trapezium ? stretched.scale : 1.0);
      summary.scale_rule = options_.scale       ? "given"
                           : options_.trapezium ? "trapezium"
                                                : "none: the solution as it is";
      if (options_.trapezium && !options_.scale) summary.trapezium = stretched;
      result.weights.flat = (task.weights.flat.to(at::kDouble) + direction.value * *summary.scale)
                                .to(task.weights.flat.scalar_type());
    }
    clock.finish(result.weights.flat, (problem.flops() - flops_before) / problem.epoch_flops());
    return result;
  }

 private:
  MethodOptions options_;
};

}  // namespace

std::unique_ptr<ForgettingMethod> make_ntk(const MethodOptions& options) {
  return std::make_unique<Ntk>(options);
}

}  // namespace pumice
