// The consistent scrub: the linear model at w(D) remembers that weight decay pulls to w0.
//   wlin(S) = −J_Sᵀ β_S,   (H_S Θ_SS + |S|λ I) β_S = r_S − H_S J_S u,   δ = wlin(Dr) − wlin(D)
//   h(w) = w + s·δ
// Curvature H = I unless told otherwise; the scale s by the rule of scale_rule.h.
#include "pumice/forgetting/linear_shift.h"
#include "pumice/forgetting/scale_rule.h"

namespace pumice {
namespace {

class Consistent final : public ForgettingMethod {
 public:
  explicit Consistent(MethodOptions options) : options_(std::move(options)) {}

  ShiftResult shift(const ForgettingTask& task, SharedProblems& shared) const override {
    const LinearProblem& problem = shared.at_weights();
    LinearShift shift(task, problem, options_, *method_named("consistent").linear);
    const LinearProblem::Direction direction =
        problem.direction(task.split.cohort, task.split.retain, shift.model());
    take(direction.report, shift.summary());
    if (direction.value.defined()) {
      const ScaleChoice choice = scale(task, problem, direction);
      shift.move(direction.value, choice.scale, choice.rule);
      shift.summary().margins = choice.margins;
    }
    return shift.finish();
  }

 private:
  // Of several processes the first one chooses, from forward passes that need not be shared.
  ScaleChoice scale(const ForgettingTask& task, const LinearProblem& problem,
                    const LinearProblem::Direction& direction) const {
    if (options_.scale) return {.scale = *options_.scale, .rule = "given"};
    ScaleChoice choice;
    if (problem.options().shard.index == 0) {
      choice = choose_scale(task, direction.value, problem.displacement(), direction.all.value);
    }
    choice.scale = problem.as_the_first_process_says(choice.scale);
    return choice;
  }

  MethodOptions options_;
};

}  // namespace

std::unique_ptr<ForgettingMethod> make_consistent(const MethodOptions& options) {
  return std::make_unique<Consistent>(options);
}

}  // namespace pumice
