// The solves of LinearProblem without the kernel: conjugate gradients in weight space.
#include <algorithm>
#include <cmath>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/forgetting/linear_problem.h"
#include "pumice/linalg/conjugate_gradients.h"
#include "pumice/linearization/gauss_newton_operator.h"

namespace pumice {
namespace {

at::Tensor chosen(const at::Tensor& rows, const std::vector<std::int64_t>& positions) {
  return rows.index_select(0, at::tensor(positions, at::kLong));
}

}  // namespace

LogitCurvature logit_curvature(Loss loss, Curvature curvature) {
  if (loss == Loss::squared || curvature == Curvature::identity) return {};
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

SolveReport LinearProblem::solve(const Positions& examples, const LinearModel& model,
                                 const at::Tensor& b, const std::string& what,
                                 at::Tensor& x) const {
  const at::ScalarType type = stream_.network().weights().flat.scalar_type();
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
  const std::string name = options_.iterates ? solve_name(examples, model, what) : "";
  const std::optional<SolveIterate> kept = restored(name);
  const std::int64_t before = kept ? kept->iteration : 0;
  if (kept) options.initial_guess = kept->solution.to(type);
  double first = 0;
  options.on_iteration = [&](const ConjugateGradientsProgress& progress) {
    const double now = std::log10(std::max(progress.relative_residual, 1e-300));
    if (progress.iteration == 1) first = std::max(0.0, now);
    const double goal = std::log10(options_.relative_tolerance.value_or(options_.error_tolerance));
    report(what, std::clamp((first - now) / (first - goal + 1e-12), 0.0, 1.0));
    if (options_.iterated) {
      options_.iterated(
          {what, before + progress.iteration, progress.relative_residual, progress.seconds});
    }
    if (options_.iterates) {
      options_.iterates->save({name, before + progress.iteration, progress.solution()});
    }
    return true;
  };
  const ConjugateGradientsResult result = conjugate_gradients(matrix, b.to(type), options);
  const ConjugateGradientsSummary& summary = result.summary;
  count_passes(static_cast<double>(summary.operator_applications) * stream_.passes_of_product(),
               examples.size());
  x = result.solution.to(at::kDouble);
  if (options_.iterates) options_.iterates->save({name, before + summary.iterations, x});
  return {.converged = summary.converged(),
          .relative_residual = summary.largest_relative_residual(),
          .iterations = before + summary.iterations,
          .error_bound = summary.columns.front().relative_error_bound,
          .explanation = summary.converged() ? "" : summary.brief()};
}

LinearProblem::Displacement LinearProblem::wlin_matrix_free(const Positions& examples,
                                                            const LinearModel& model) const {
  const at::Tensor pulled = stream_.vjp(examples, chosen(right_side(model), examples));
  count_passes(3, examples.size());
  Displacement result;
  result.report = solve(examples, model, -pulled, "conjugate gradients", result.value);
  return result;
}

// A_r δ = J_fᵀ (r_f + H_f J_f (wlin(D) − u)) + |f|·λ·wlin(D)
void LinearProblem::finish_matrix_free(const Positions& cohort, const Positions& retain,
                                       const LinearModel& model, Direction& direction) const {
  const at::Tensor& all = direction.all.value;
  const at::Tensor step = model.displaced ? all - displacement_ : all;
  const at::Tensor change = curvature_product(chosen(logits(), cohort), stream_.jvp(cohort, step),
                                              loss_, model.curvature);
  const at::Tensor b = stream_.vjp(cohort, chosen(residual(), cohort) + change) +
                       all * (model.decay * static_cast<double>(cohort.size()));
  count_passes(6, cohort.size());
  direction.report =
      worse(direction.all.report,
            solve(retain, model, b, "conjugate gradients without the cohort", direction.value));
  direction.retain.value = all + direction.value;
  direction.retain.report = direction.report;
}

}  // namespace pumice
