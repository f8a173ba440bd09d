// The solves of LinearProblem without the kernel: conjugate gradients in weight space.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/forgetting/dual_solve.h"
#include "pumice/forgetting/linear_problem.h"
#include "pumice/linalg/conjugate_gradients.h"
#include "pumice/linearization/gauss_newton_operator.h"

namespace pumice {

LogitCurvature logit_curvature(Loss loss, Curvature curvature) {
  if (is_identity(loss, curvature)) return {};
  return {
      .product = [=](const at::Tensor& logits,
                     const at::Tensor& x) { return curvature_product(logits, x, loss, curvature); },
      .root = [=](const at::Tensor& logits) { return curvature_root(logits, loss, curvature); }};
}

std::string LinearProblem::solve_name(const Positions& examples, const LinearModel& model,
                                      const std::string& what) const {
  Digest digest;
  digest.add_text(pumice::digest(stream_.network().weights()));
  const at::Tensor u = displacement_.contiguous();
  digest.add_bytes(u.data_ptr(), u.nbytes());
  digest.add_bytes(examples.data(), examples.size() * sizeof(std::int64_t));
  const at::Tensor labels = labels_.to(at::kLong).contiguous();
  digest.add_bytes(labels.data_ptr(), labels.nbytes());
  digest.add_text(text(loss_name(loss_), " ", curvature_name(model.curvature), " ", model.decay,
                       " ", model.displaced));
  return text(what, " ", digest.hex().substr(0, 32));
}

std::optional<SolveIterate> LinearProblem::restored(const std::string& name) const {
  if (!options_.iterates) return {};
  std::optional<SolveIterate> kept;
  if (options_.shard.index == 0) kept = options_.iterates->restore(name);
  const at::Tensor iteration = stream_.as_the_first_process_says(
      at::tensor({kept ? static_cast<double>(kept->iteration) : -1.0}, at::kDouble));
  if (iteration.item<double>() < 0) return {};
  if (kept && kept->solution.numel() != stream_.columns()) {
    fail("kept iterate: ", kept->solution.numel(), " values, must be ", stream_.columns());
  }
  const at::Tensor own = kept ? kept->solution : at::zeros({stream_.columns()}, at::kDouble);
  return SolveIterate{.solve = name,
                      .iteration = static_cast<std::int64_t>(iteration.item<double>()),
                      .solution = stream_.as_the_first_process_says(own)};
}

double LinearProblem::as_the_first_process_says(double value) const {
  return stream_.as_the_first_process_says(at::tensor({value}, at::kDouble)).item<double>();
}

SolveReport LinearProblem::solve(const Positions& examples, const LinearModel& model,
                                 const at::Tensor& b, const SolveGoal& goal, at::Tensor& x) const {
  const std::string& what = goal.what;
  const std::int64_t least = fixed_bytes() + stream_.bytes_per_example();
  if (memory() < least) {
    fail("memory: ", bytes_text(static_cast<double>(memory())),
         " is too little, this solve needs at least ", bytes_text(static_cast<double>(least)));
  }
  const double ridge = model.decay * static_cast<double>(examples.size());
  const GaussNewtonOperator matrix(stream_, examples, logit_curvature(loss_, model.curvature),
                                   ridge);
  ConjugateGradientsOptions options;
  options.relative_tolerance = options_.relative_tolerance;
  options.error_tolerance = options_.error_tolerance;
  options.smallest_eigenvalue = ridge;
  options.max_iterations = options_.max_iterations;
  if (options_.shard.count > 1) {
    options.agreed = [this](at::Tensor own) { return stream_.as_the_first_process_says(own); };
  }
  SolveReport report;
  const std::unique_ptr<LinearOperator> approximate_inverse =
      preconditioner(examples, model, report);
  options.preconditioner = approximate_inverse.get();
  const std::string name = options_.iterates ? solve_name(examples, model, what) : "";
  const std::optional<SolveIterate> kept = restored(name);
  std::int64_t before = kept ? kept->iteration : 0;
  options.initial_guess = kept ? kept->solution : goal.guess;
  double first = 0;
  options.on_iteration = [&](const ConjugateGradientsProgress& progress) {
    const double now = std::log10(std::max(progress.relative_residual, 1e-300));
    if (progress.iteration == 1) first = std::max(0.0, now);
    const double end = std::log10(options_.relative_tolerance.value_or(*options.error_tolerance));
    if (options_.iterated) {
      options_.iterated(
          {what, before + progress.iteration, progress.relative_residual, progress.seconds});
    }
    this->report(what, std::clamp((first - now) / (first - end + 1e-12), 0.0, 1.0));
    if (options_.iterates) {
      options_.iterates->save({name, before + progress.iteration, progress.solution()});
    }
    return true;
  };
  const RoundsResult rounds =
      solve_in_rounds(matrix, b, options, goal.needed_error, [&](const auto& result) {
        const ConjugateGradientsSummary& summary = result.summary;
        count_passes(
            static_cast<double>(summary.operator_applications) * stream_.passes_of_product(),
            examples.size());
        count_passes(static_cast<double>(summary.iterations) * (stream_.passes_of_product() + 1),
                     static_cast<std::size_t>(*report.preconditioner));
        before += summary.iterations;
        if (options_.iterates) options_.iterates->save({name, before, result.solution});
      });
  const ConjugateGradientsSummary& summary = rounds.nearest.summary;
  x = rounds.nearest.solution;
  report.iterations = before;
  report.relative_residual = summary.largest_relative_residual();
  report.error_bound = summary.columns.front().relative_error_bound;
  report.converged = rounds.converged;
  report.near_enough = rounds.near_enough;
  report.explanation = rounds.explanation;
  report.out_of_iterations = rounds.out_of_iterations;
  return report;
}

// Training that came near its end left the weights near the minimum of the objective, and that is
// where the linear model's minimum is, too: b − A u is the gradient at w. Zero is nearer to the
// solution x, in the norm of A, if |x|_A² < |x − u|_A² = |x|_A² − 2 uᵀb + uᵀA u.
std::optional<at::Tensor> LinearProblem::guess_of_wlin(const Positions& examples,
                                                       const LinearModel& model,
                                                       const at::Tensor& b) const {
  if (!model.displaced) return {};
  const at::Tensor own = chosen(displaced(), examples);
  const at::Tensor curved =
      curvature_product(chosen(logits(), examples), own, loss_, model.curvature);
  const double energy =
      (own * curved).sum().item<double>() + model.decay * static_cast<double>(examples.size()) *
                                                displacement_.square().sum().item<double>();
  const double gain = as_the_first_process_says(2 * displacement_.dot(b).item<double>() - energy);
  if (!(gain > 0)) return {};
  return displacement_;
}

LinearProblem::Displacement LinearProblem::wlin_matrix_free(const Positions& examples,
                                                            const LinearModel& model,
                                                            SolveGoal goal) const {
  const at::Tensor b = -stream_.vjp(examples, chosen(right_side(model), examples));
  count_passes(3, examples.size());
  goal.guess = guess_of_wlin(examples, model, b);
  Displacement result;
  result.report = solve(examples, model, b, goal, result.value);
  return result;
}

LinearProblem::Displacement LinearProblem::step_matrix_free(const Positions& examples,
                                                            const LinearModel& model) const {
  const double ridge = model.decay * static_cast<double>(examples.size());
  const at::Tensor b =
      -(stream_.vjp(examples, chosen(residual(), examples)) + displacement_ * ridge);
  count_passes(3, examples.size());
  Displacement result;
  result.report = solve(
      examples, model, b,
      {.what = "conjugate gradients of a step", .needed_error = near_shift(ridge)}, result.value);
  return result;
}

NeededError LinearProblem::near_shift(double ridge) const {
  return [=, this](const at::Tensor& shift, const SolveError& so_far) {
    return needed_for_shift(as_the_first_process_says(shift.norm().item<double>()), ridge, so_far);
  };
}

// A_r δ = J_fᵀ ρ + |f|·λ·wlin(D),   ρ = r_f + H_f J_f (wlin(D) − u)
LinearProblem::Direction LinearProblem::direction_matrix_free(const Positions& cohort,
                                                              const Positions& retain,
                                                              const LinearModel& model) const {
  const at::Tensor own_logits = chosen(logits(), cohort);
  const auto remaining_residual = [&](const at::Tensor& all) {
    const at::Tensor step = model.displaced ? all - displacement_ : all;
    count_passes(2, cohort.size());
    return chosen(residual(), cohort) +
           curvature_product(own_logits, stream_.jvp(cohort, step), loss_, model.curvature);
  };
  Positions everything(static_cast<std::size_t>(examples()));
  std::iota(everything.begin(), everything.end(), 0);
  Direction direction;
  SolveGoal small_beside_the_residual;
  small_beside_the_residual.needed_error = [&](const at::Tensor& all, const SolveError& so_far) {
    return needed_for_right_side(as_the_first_process_says(length_on_curvature(
                                     own_logits, remaining_residual(all), loss_, model.curvature)),
                                 so_far);
  };
  direction.all = wlin_matrix_free(everything, model, small_beside_the_residual);
  const at::Tensor& all = direction.all.value;
  const at::Tensor b = stream_.vjp(cohort, remaining_residual(all)) +
                       all * (model.decay * static_cast<double>(cohort.size()));
  count_passes(3, cohort.size());
  const SolveGoal small_beside_the_shift{
      .what = "conjugate gradients without the cohort",
      .needed_error = near_shift(model.decay * static_cast<double>(retain.size()))};
  direction.report =
      worse(direction.all.report, solve(retain, model, b, small_beside_the_shift, direction.value));
  direction.retain.value = all + direction.value;
  direction.retain.report = direction.report;
  return direction;
}

}  // namespace pumice
