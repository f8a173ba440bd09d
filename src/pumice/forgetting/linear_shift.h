// What every linearised method does around its solve: options, summary, and the step itself.
#pragma once

#include "pumice/forgetting/forgetting_method.h"

namespace pumice {

// Begins the clock and fills in what is used; move() sets w + scale·direction; finish() hands the
// result over. Not calling move() leaves the weights undefined: the solve failed.
class LinearShift {
 public:
  // `curvature`: unless the options name another. `displaced`: see LinearModel.
  LinearShift(const ForgettingTask& task, const LinearProblem& problem,
              const MethodOptions& options, Curvature curvature, bool displaced)
      : task_(task),
        problem_(problem),
        result_{.weights = {task.weights.layout, {}}, .summary = {}},
        clock_(task, result_.summary),
        flops_before_(problem.flops()),
        model_{.curvature = options.curvature.value_or(curvature),
               .decay = options.ridge.value_or(task.weight_decay),
               .displaced = displaced,
               .solver = options.solver.value_or(Solver::dense)} {
    ForgettingSummary& summary = result_.summary;
    summary.shared_kernel = problem.has_kernel();
    summary.ridge = model_.decay;
    summary.curvature = curvature_name(model_.curvature);
    summary.linearized_at = "weights";
    summary.solver = solver_name(model_.solver);
    summary.slow_parameters = problem.stream().network().without_rule();
  }
  LinearShift(const LinearShift&) = delete;
  LinearShift& operator=(const LinearShift&) = delete;

  const LinearModel& model() const { return model_; }
  ForgettingSummary& summary() { return result_.summary; }

  void move(const at::Tensor& direction, double scale, std::string rule) {
    result_.summary.direction_norm = direction.norm().item<double>();
    result_.summary.scale = scale;
    result_.summary.scale_rule = std::move(rule);
    result_.weights.flat = (task_.weights.flat.to(at::kDouble) + direction * scale)
                               .to(task_.weights.flat.scalar_type());
  }

  ShiftResult finish() {
    clock_.finish(result_.weights.flat,
                  (problem_.flops() - flops_before_) / problem_.epoch_flops());
    return result_;
  }

 private:
  const ForgettingTask& task_;
  const LinearProblem& problem_;
  ShiftResult result_;
  SummaryClock clock_;
  double flops_before_;
  LinearModel model_;
};

}  // namespace pumice
