// One Newton step on the retained data, with the Gauss-Newton matrix as its curvature:
//   h(w) = w − A_r⁻¹ g_r,   A_r = J_rᵀ H_r J_r + Nr·λ·I,   g_r = J_rᵀ r_r + Nr·λ·u,
// which is centre + wlin(Dr). Unlike `consistent` it also moves a model that has no cohort, by what
// its training stopped short of.
#include "pumice/forgetting/linear_shift.h"

namespace pumice {
namespace {

class Newton final : public ForgettingMethod {
 public:
  explicit Newton(MethodOptions options) : options_(std::move(options)) {}

  ShiftResult shift(const ForgettingTask& task, SharedProblems& shared) const override {
    const LinearProblem& problem = shared.at_weights();
    LinearShift shift(task, problem, options_, *method_named("newton").linear);
    const LinearProblem::Displacement solved = problem.step(task.split.retain, shift.model());
    take(solved.report, shift.summary());
    if (solved.value.defined()) {
      shift.move(solved.value, options_.scale.value_or(1.0),
                 options_.scale ? "given" : "none: the whole step");
    }
    return shift.finish();
  }

 private:
  MethodOptions options_;
};

}  // namespace

std::unique_ptr<ForgettingMethod> make_newton(const MethodOptions& options) {
  return std::make_unique<Newton>(options);
}

}  // namespace pumice
