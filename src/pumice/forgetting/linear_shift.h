// What every linearised method does around its solve: options, summary, and the step itself.
#pragma once

#include "pumice/forgetting/forgetting_method.h"
#include "pumice/forgetting/solve_forecast.h"

namespace pumice {

inline LinearModel linear_model(const ForgettingTask& task, const MethodOptions& options,
                                const LinearShape& shape) {
  return {.curvature = options.curvature.value_or(shape.curvature),
          .decay = options.ridge.value_or(task.weight_decay),
          .displaced = shape.displaced,
          .solver = options.solver.value_or(Solver::automatic)};
}

// Begins the clock and fills in what is used; move() sets w + scale·direction; finish() hands the
// result over. Not calling move() leaves the weights undefined: the solve failed.
class LinearShift {
 public:
  LinearShift(const ForgettingTask& task, const LinearProblem& problem,
              const MethodOptions& options, const LinearShape& shape)
      : task_(task),
        problem_(problem),
        result_{.weights = {task.weights.layout, {}}, .summary = {}},
        clock_(task, result_.summary),
        difference_(shape.difference),
        model_(linear_model(task, options, shape)) {
    ForgettingSummary& summary = result_.summary;
    problem.begin_count();
    if (model_.solver == Solver::automatic) choose();
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
    clock_.finish(result_.weights.flat, problem_.flops() / problem_.epoch_flops());
    return result_;
  }

 private:
  // A sample that is everything makes the kernel of everything: no need to ask which is faster.
  void choose() {
    if (problem_.has_kernel() || problem_.sample_size() == problem_.examples()) {
      model_.solver = Solver::dense;
      return;
    }
    const SolverChoice choice =
        choose_solver(problem_, model_,
                      {.cohort = static_cast<std::int64_t>(task_.split.cohort.size()),
                       .difference = difference_});
    model_.solver = choice.solver;
    result_.summary.solver_reason = choice.reason;
    result_.summary.forecast_seconds = choice.chosen().seconds;
  }

  const ForgettingTask& task_;
  const LinearProblem& problem_;
  ShiftResult result_;
  SummaryClock clock_;
  bool difference_;
  LinearModel model_;
};

}  // namespace pumice
