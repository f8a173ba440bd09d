// The consistent scrub: the linear model at w(D) remembers that weight decay pulls to w0.
//   wlin(S) = −J_Sᵀ β_S,   (H_S Θ_SS + |S|λ I) β_S = r_S − H_S J_S u,   δ = wlin(Dr) − wlin(D)
//   h(w) = w + s·δ
// Curvature H = I unless told otherwise; the scale s by the rule of scale_rule.h.
#include "pumice/forgetting/forgetting_method.h"
#include "pumice/forgetting/scale_rule.h"

namespace pumice {
namespace {

class Consistent final : public ForgettingMethod {
 public:
  explicit Consistent(MethodOptions options) : options_(std::move(options)) {}

  ShiftResult shift(const ForgettingTask& task, SharedProblems& shared) const override {
    ShiftResult result{.weights = {task.weights.layout, {}}, .summary = {}};
    ForgettingSummary& summary = result.summary;
    SummaryClock clock(task, summary);
    const LinearProblem& problem = shared.at_weights();
    summary.shared_kernel = problem.has_kernel();
    const double flops_before = problem.flops();
    const LinearModel model{.curvature = options_.curvature.value_or(Curvature::identity),
                            .decay = options_.ridge.value_or(task.weight_decay),
                            .displaced = true,
                            .solver = options_.solver.value_or(Solver::dual)};
    summary.ridge = model.decay;
    summary.curvature = curvature_name(model.curvature);
    summary.linearized_at = "weights";
    summary.solver = solver_name(model.solver);
    summary.slow_parameters = problem.linearization().without_rule();
    const LinearProblem::Direction direction =
        problem.direction(task.split.cohort, task.split.retain, model);
    take(direction.report, summary);
    if (direction.value.defined()) {
      summary.direction_norm = direction.value.norm().item<double>();
      if (options_.scale) {
        summary.scale = *options_.scale;
        summary.scale_rule = "given";
      } else {
        const ScaleChoice choice =
            choose_scale(task, direction.value, problem.displacement(), direction.all.value);
        summary.scale = choice.scale;
        summary.scale_rule = choice.rule;
        summary.margins = choice.margins;
      }
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

std::unique_ptr<ForgettingMethod> make_consistent(const MethodOptions& options) {
  return std::make_unique<Consistent>(options);
}

}  // namespace pumice
