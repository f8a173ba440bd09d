// The paper's scrub. Linearised at w(D) (or w0), H → I (or the softmax's),
//   wlin(S) = −J_Sᵀ (H_S Θ_SS + |S|λ I)⁻¹ r_S,   δ = wlin(Dr) − wlin(D),   h(w) = w + scale·δ,
// with the two ridges N·λ and Nr·λ. The trapezium trick stretches δ:
//   e = u − wlin(Dr),  k = cos∠(δ, e)
//   |δ'| = |δ| + 2·sin(arccos(k) − π/2)·|e|  for k < 0,   |δ| + 2·k·|e|  for k >= 0,
//   scale = |δ'|/|δ|.
// For k < 0 the sine is −k as well, so both lines say |δ| + 2·|k|·|e|.
#include <cmath>
#include <numbers>

#include "pumice/forgetting/linear_shift.h"

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
    const bool at_start = options_.linearize_at == LinearizeAt::start;
    const LinearProblem& problem = at_start ? shared.at_start() : shared.at_weights();
    LinearShift shift(task, problem, options_, *method_named("ntk").linear);
    if (at_start) shift.summary().linearized_at = "start";
    const LinearProblem::Direction direction =
        problem.direction(task.split.cohort, task.split.retain, shift.model());
    take(direction.report, shift.summary());
    if (direction.value.defined()) {
      const at::Tensor u = task.weights.flat.to(at::kDouble) - task.centre.to(at::kDouble);
      const TrapeziumSummary stretched = trapezium(direction.value, u - direction.retain.value);
      const double scale = options_.trapezium ? stretched.scale : 1.0;
      shift.move(direction.value, options_.scale.value_or(scale),
                 options_.scale       ? "given"
                 : options_.trapezium ? "trapezium"
                                      : "none: the solution as it is");
      if (options_.trapezium && !options_.scale) shift.summary().trapezium = stretched;
    }
    return shift.finish();
  }

 private:
  MethodOptions options_;
};

}  // namespace

std::unique_ptr<ForgettingMethod> make_ntk(const MethodOptions& options) {
  return std::make_unique<Ntk>(options);
}

}  // namespace pumice
