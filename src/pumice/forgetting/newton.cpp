// One Newton step on the retained data, with the Gauss-Newton matrix as its curvature:
//   h(w) = w − A_r⁻¹ g_r,   A_r = J_rᵀ H_r J_r + Nr·λ·I,   g_r = J_rᵀ r_r + Nr·λ·u,
// which is centre + wlin(Dr). Unlike `consistent` it also moves a model that has no cohort, by what
// its training stopped short of.
#include "pumice/forgetting/forgetting_method.h"

namespace pumice {
namespace {

class Newton final : public ForgettingMethod {
 public:
  explicit Newton(MethodOptions options) : options_(std::move(options)) {}

  ShiftResult shift(const ForgettingTask& task, SharedProblems& shared) const override {
    ShiftResult result{.weights = {task.weights.layout, {}}, .summary = {}};
    ForgettingSummary& summary = result.summary;
    SummaryClock clock(task, summary);
    const LinearProblem& problem = shared.at_weights();
    summary.shared_kernel = problem.has_kernel();
    const double flops_before = problem.flops();
    const LinearModel model{.curvature = options_.curvature.value_or(Curvature::softmax),
                            .decay = options_.ridge.value_or(task.weight_decay),
                            .displaced = true,
                            .solver = options_.solver.value_or(Solver::dual)};
    summary.ridge = model.decay;
    summary.curvature = curvature_name(model.curvature);
    summary.linearized_at = "weights";
    summary.solver = solver_name(model.solver);
    summary.slow_parameters = problem.linearization().without_rule();
    const LinearProblem::Displacement solved = problem.wlin(task.split.retain, model);
    take(solved.report, summary);
    if (solved.value.defined()) {
      const at::Tensor step = solved.value - problem.displacement();
      summary.direction_norm = step.norm().item<double>();
      summary.scale = options_.scale.value_or(1.0);
      summary.scale_rule = options_.scale ? "given" : "none: the whole step";
      result.weights.flat = (task.weights.flat.to(at::kDouble) + step * *summary.scale)
                                .to(task.weights.flat.scalar_type());
    }
    clock.finish(result.weights.flat, (problem.flops() - flops_before) / problem.epoch_flops());
    return result;
  }

 private:
  MethodOptions options_;
};

}  // namespace

std::unique_ptr<ForgettingMethod> make_newton(const MethodOptions& options) {
  return std::make_unique<Newton>(options);
}

}  // namespace pumice
