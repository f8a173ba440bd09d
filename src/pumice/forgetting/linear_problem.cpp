#include "pumice/forgetting/linear_problem.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"
#include "pumice/linearization/gauss_newton_operator.h"

namespace pumice {
namespace {

at::Tensor index_of(const std::vector<std::int64_t>& positions) {
  return at::tensor(positions, at::kLong);
}

at::Tensor chosen(const at::Tensor& rows, const std::vector<std::int64_t>& positions) {
  return rows.defined() ? rows.index_select(0, index_of(positions)) : at::Tensor();
}

SolveReport worse(const SolveReport& first, const SolveReport& second) {
  SolveReport both = first.converged ? second : first;
  both.relative_residual = std::max(first.relative_residual, second.relative_residual);
  if (first.condition_estimate && second.condition_estimate) {
    both.condition_estimate = std::max(*first.condition_estimate, *second.condition_estimate);
  }
  if (first.iterations && second.iterations) {
    both.iterations = *first.iterations + *second.iterations;
  }
  return both;
}

}  // namespace

Solver solver_named(const std::string& name) {
  if (name == "dual") return Solver::dual;
  if (name == "primal") return Solver::primal;
  fail("solver: '", name, "' is unknown", suggestion(name, {"dual", "primal"}));
}

std::string solver_name(Solver solver) {
  return solver == Solver::primal ? "primal" : "dual";
}

LinearProblem::LinearProblem(const Model& model, const Weights& weights, const at::Tensor& inputs,
                             const at::Tensor& labels, const at::Tensor& centre, Loss loss,
                             LinearProblemOptions options)
    : linearization_(model, weights, inputs),
      labels_(labels),
      loss_(loss),
      options_(std::move(options)) {
  if (centre.dim() != 1 || centre.numel() != linearization_.columns()) {
    fail("centre of the decay: ", centre.numel(), " values, must be ", linearization_.columns());
  }
  if (labels.numel() != linearization_.examples()) {
    fail("labels: ", labels.numel(), ", must be one for each of ", linearization_.examples(),
         " examples");
  }
  displacement_ = weights.flat.detach().to(at::kDouble) - centre.to(at::kDouble);
}

double LinearProblem::epoch_flops() const {
  return 3 * linearization_.forward_flops() * static_cast<double>(linearization_.examples());
}

void LinearProblem::report(const std::string& what, double share) const {
  if (options_.progress) options_.progress(what, share);
}

const at::Tensor& LinearProblem::logits() const {
  if (!logits_.defined()) {
    logits_ = linearization_.logits();
    flops_ += epoch_flops() / 3;
  }
  return logits_;
}

const at::Tensor& LinearProblem::residual() const {
  if (!residual_.defined()) residual_ = residuals(logits(), labels_, loss_);
  return residual_;
}

const at::Tensor& LinearProblem::displaced() const {
  if (!displaced_.defined()) {
    displaced_ = linearization_.jvp(displacement_.to(linearization_.weights().flat.scalar_type()))
                     .to(at::kDouble);
    flops_ += epoch_flops() * 2 / 3;
  }
  return displaced_;
}

const Kernel& LinearProblem::kernel() const {
  if (!kernel_) {
    KernelOptions options;
    options.memory = options_.memory;
    options.progress = [this](double share) { report("kernel", share); };
    kernel_ = linearization_.kernel(options);
    flops_ += kernel_->summary.flops();
  }
  return *kernel_;
}

at::Tensor LinearProblem::pull(const at::Tensor& coefficients) const {
  flops_ += epoch_flops();
  return linearization_.vjp(coefficients).to(at::kDouble);
}

at::Tensor LinearProblem::root(const LinearModel& model) const {
  return curvature_root(logits(), loss_, model.curvature);
}

at::Tensor LinearProblem::right_side(const LinearModel& model) const {
  if (!model.displaced) return residual();
  return residual() - curvature_product(root(model), displaced());
}

LinearProblem::Displacement LinearProblem::wlin(const std::vector<std::int64_t>& examples,
                                                const LinearModel& model) const {
  if (!(model.decay > 0) || !std::isfinite(model.decay)) {
    fail("weight decay: ", model.decay, ", must be > 0 for a solve with a ridge");
  }
  // Training on nothing leaves the weights at the centre of the decay.
  if (examples.empty()) {
    Displacement none{.value = at::zeros_like(displacement_), .coefficients = {}, .report = {}};
    if (model.solver == Solver::dual) none.coefficients = at::zeros_like(residual());
    return none;
  }
  return model.solver == Solver::dual ? wlin_dual(examples, model) : wlin_primal(examples, model);
}

LinearProblem::Displacement LinearProblem::wlin_dual(const std::vector<std::int64_t>& examples,
                                                     const LinearModel& model) const {
  const at::Tensor theta = kernel_of(kernel().theta, examples, linearization_.classes());
  const DualSolution solution = solve_dual({theta, chosen(root(model), examples)},
                                           model.decay * static_cast<double>(examples.size()),
                                           chosen(right_side(model), examples));
  Displacement result;
  if (!solution.succeeded()) {
    result.report = {.converged = false, .explanation = solution.factorization.brief()};
    return result;
  }
  result.report = {.relative_residual = solution.relative_residual,
                   .condition_estimate = solution.condition_estimate};
  if (!(solution.relative_residual < 1e-6)) {
    result.report.converged = false;
    result.report.explanation = text("the factorised system is solved to a relative residual of ",
                                     solution.relative_residual, " only, must be < 1e-6");
  }
  result.coefficients = at::zeros_like(residual());
  result.coefficients.index_copy_(0, index_of(examples), -solution.coefficients);
  result.value = pull(result.coefficients);
  return result;
}

Linearization LinearProblem::part(const std::vector<std::int64_t>& examples) const {
  const at::Tensor own = linearization_.inputs().index_select(0, index_of(examples));
  return {linearization_.model(), linearization_.weights(),
          own.dim() == 4 ? own.contiguous(linearization_.inputs().suggest_memory_format()) : own};
}

SolveReport LinearProblem::solve_primal(const Linearization& part, const at::Tensor& root,
                                        double ridge, const at::Tensor& b, const std::string& what,
                                        at::Tensor& x) const {
  const at::ScalarType type = linearization_.weights().flat.scalar_type();
  const GaussNewtonOperator matrix(part, root, ridge);
  ConjugateGradientsOptions options;
  // Products in float32 carry about seven digits, whatever the vectors are kept in.
  options.relative_tolerance = options_.relative_tolerance;
  options.smallest_eigenvalue = ridge;
  options.max_iterations = options_.max_iterations;
  double first = 0;
  options.on_iteration = [&](const ConjugateGradientsProgress& progress) {
    const double now = std::log10(std::max(progress.relative_residual, 1e-300));
    if (progress.iteration == 1) first = std::min(0.0, now);
    const double goal = std::log10(options_.relative_tolerance);
    report(what, std::clamp((first - now) / (first - goal + 1e-12), 0.0, 1.0));
    return true;
  };
  const ConjugateGradientsResult result = conjugate_gradients(matrix, b.to(type), options);
  flops_ += static_cast<double>(result.summary.operator_applications) * 5 *
            linearization_.forward_flops() * static_cast<double>(part.examples());
  x = result.solution.to(at::kDouble);
  return {.converged = result.summary.converged(),
          .relative_residual = result.summary.largest_relative_residual(),
          .iterations = result.summary.iterations,
          .explanation = result.summary.converged() ? "" : result.summary.brief()};
}

LinearProblem::Displacement LinearProblem::wlin_primal(const std::vector<std::int64_t>& examples,
                                                       const LinearModel& model) const {
  const Linearization own = part(examples);
  const at::Tensor pulled = own.vjp(chosen(right_side(model), examples));
  flops_ += 3 * linearization_.forward_flops() * static_cast<double>(examples.size());
  Displacement result;
  result.report = solve_primal(own, chosen(root(model), examples),
                               model.decay * static_cast<double>(examples.size()), -pulled,
                               "conjugate gradients", result.value);
  return result;
}

LinearProblem::Direction LinearProblem::direction(const std::vector<std::int64_t>& cohort,
                                                  const std::vector<std::int64_t>& retain,
                                                  const LinearModel& model) const {
  std::vector<std::int64_t> everything(static_cast<std::size_t>(linearization_.examples()));
  std::iota(everything.begin(), everything.end(), 0);
  assert(cohort.size() + retain.size() == everything.size());
  Direction result;
  result.all = wlin(everything, model);
  if (!result.all.report.converged && !result.all.value.defined()) {
    result.report = result.all.report;
    return result;
  }
  if (cohort.empty()) {
    result.retain = result.all;
    result.report = result.all.report;
    result.value = at::zeros_like(displacement_);
    if (result.all.coefficients.defined()) {
      result.coefficients = at::zeros_like(result.all.coefficients);
    }
    return result;
  }
  if (model.solver == Solver::dual || retain.empty()) {
    result.retain = wlin(retain, model);
    result.report = worse(result.all.report, result.retain.report);
    if (!result.retain.value.defined()) return result;
    if (model.solver == Solver::dual) {
      result.coefficients = result.retain.coefficients - result.all.coefficients;
      result.value = pull(result.coefficients);
    } else {
      result.value = result.retain.value - result.all.value;
    }
    return result;
  }
  // A_r δ = J_fᵀ (r_f + H_f J_f (wlin(D) − u)) + |f|·λ·wlin(D)
  const at::ScalarType type = linearization_.weights().flat.scalar_type();
  const Linearization forgotten = part(cohort);
  const at::Tensor step = model.displaced ? result.all.value - displacement_ : result.all.value;
  const at::Tensor change =
      curvature_product(chosen(root(model), cohort), forgotten.jvp(step.to(type)).to(at::kDouble));
  const at::Tensor b = forgotten.vjp(chosen(residual(), cohort) + change).to(at::kDouble) +
                       result.all.value * (model.decay * static_cast<double>(cohort.size()));
  const Linearization kept = part(retain);
  result.report = worse(result.all.report,
                        solve_primal(kept, chosen(root(model), retain),
                                     model.decay * static_cast<double>(retain.size()), b,
                                     "conjugate gradients on the retained part", result.value));
  result.retain.value = result.all.value + result.value;
  result.retain.report = result.report;
  return result;
}

}  // namespace pumice
