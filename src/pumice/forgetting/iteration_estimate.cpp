#include "pumice/forgetting/iteration_estimate.h"

#include <algorithm>
#include <cmath>

#include "pumice/core/error.h"
#include "pumice/forgetting/solve_goals.h"
#include "pumice/linalg/cholesky.h"
#include "pumice/linalg/conjugate_gradients.h"
#include "pumice/linalg/dense_operator.h"

namespace pumice {
namespace {

constexpr double smallest_share = 1e-10;  // added to Θ's diagonal, of its mean, for a factorization

at::Tensor symmetric(const at::Tensor& matrix) {
  return (matrix + matrix.t()).mul_(0.5);
}

// Rᵀ applied to the rows of L, example by example: (n·k)×columns.
at::Tensor turned(const at::Tensor& root, const at::Tensor& rows) {
  if (!root.defined()) return rows;
  return root.transpose(1, 2)
      .bmm(rows.view({root.size(0), root.size(1), -1}))
      .reshape({-1, rows.size(1)});
}

// u in the coordinates in which L stands for J: what the rows see, and the length of the rest.
at::Tensor displacement_on_rows(const at::Tensor& factor, const SampledProblem& problem,
                                std::int64_t examples) {
  const at::Tensor seen = problem.displaced.narrow(0, 0, examples).to(at::kDouble).reshape({-1, 1});
  const at::Tensor within = at::linalg_solve_triangular(factor, seen, /*upper=*/false).squeeze(1);
  const double length = problem.displacement_norm;
  const double rest = length * length - within.square().sum().item<double>();
  return at::cat({within, at::full({1}, std::sqrt(std::max(0.0, rest)), within.options())});
}

}  // namespace

std::int64_t iterations_on_sample(const SampledProblem& problem, std::int64_t examples,
                                  std::int64_t preconditioner) {
  const std::int64_t classes = problem.right_side.size(1);
  const std::int64_t rows = examples * classes;
  if (examples < 1 || examples > problem.right_side.size(0) || preconditioner >= examples) {
    fail("sample: ", examples, " examples with ", preconditioner,
         " for the preconditioner, must be fewer of ", problem.right_side.size(0));
  }
  at::Tensor theta = symmetric(problem.theta.narrow(0, 0, rows).narrow(1, 0, rows).to(at::kDouble));
  theta.diagonal().add_(smallest_share * theta.diagonal().mean().item<double>() + 1e-300);
  const Cholesky cholesky = Cholesky::factorize(theta, {.eigenvalues_up_to = 0});
  if (!cholesky.summary().succeeded) return problem.max_iterations;
  at::Tensor jacobian = cholesky.factor();
  std::optional<at::Tensor> displacement;
  if (problem.displaced.defined() && problem.solve.what != SolvedFor::direction) {
    displacement = displacement_on_rows(jacobian, problem, examples);
    jacobian = at::cat({jacobian, jacobian.new_zeros({rows, 1})}, 1);
  }
  const SolvedFor what = problem.solve.what;
  // The cohort has the same share of a part of the sample.
  const auto drawn = static_cast<double>(problem.right_side.size(0));
  const auto cohort = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(problem.solve.cohort) * static_cast<double>(examples) / drawn));
  const bool divided = cohort > 0 && cohort < examples;
  const std::int64_t retained = divided ? examples - cohort : examples;
  const std::int64_t solved = what == SolvedFor::direction ? retained : examples;
  const at::Tensor logits = problem.logits.narrow(0, 0, examples);
  const at::Tensor root = curvature_root(logits, problem.loss, problem.curvature);
  const double ridge = problem.decay * static_cast<double>(solved);
  const auto matrix_of = [&](const at::Tensor& chosen, double weight) {
    const at::Tensor rows_of_chosen =
        jacobian.view({examples, classes, -1}).index_select(0, chosen).flatten(0, 1);
    const at::Tensor own =
        turned(root.defined() ? root.index_select(0, chosen) : root, rows_of_chosen);
    at::Tensor matrix = symmetric(own.t().mm(own)).mul_(weight);
    matrix.diagonal().add_(ridge);
    return matrix;
  };
  ConjugateGradientsOptions options;
  options.relative_tolerance = problem.relative_tolerance;
  options.error_tolerance = problem.error_tolerance;
  options.smallest_eigenvalue = ridge;
  options.max_iterations = problem.max_iterations;
  std::optional<DenseOperator> inverse;
  preconditioner = std::min(preconditioner, solved - 1);
  if (preconditioner > 0) {
    const at::Tensor trace =
        curvature_trace(logits.narrow(0, 0, solved), problem.loss, problem.curvature);
    const at::Tensor chosen =
        trace.defined() ? most_curved_first(trace) : at::arange(solved, at::kLong);
    const double weight = weight_of_chosen(problem.loss, problem.curvature, solved, preconditioner);
    const Cholesky factor = Cholesky::factorize(
        matrix_of(chosen.narrow(0, 0, preconditioner), weight), {.eigenvalues_up_to = 0});
    if (!factor.summary().succeeded) return problem.max_iterations;
    inverse.emplace(symmetric(factor.solve(at::eye(jacobian.size(1), at::kDouble))));
    options.preconditioner = &*inverse;
  }
  at::Tensor t = problem.right_side.narrow(0, 0, examples).to(at::kDouble).clone();
  NeededError needed;
  if (what != SolvedFor::minimum) {
    needed = [ridge](const at::Tensor& x, const SolveError& so_far) {
      return needed_for_shift(x.norm().item<double>(), ridge, so_far);
    };
  }
  if (divided && what == SolvedFor::direction) t.narrow(0, 0, retained).zero_();
  if (divided && what == SolvedFor::minimum) {
    const at::Tensor own = jacobian.narrow(0, retained * classes, cohort * classes);
    const at::Tensor right = t.narrow(0, retained, cohort);
    const at::Tensor own_logits = logits.narrow(0, retained, cohort);
    needed = [=, &problem](const at::Tensor& x, const SolveError& so_far) {
      const at::Tensor seen =
          curvature_product(own_logits, own.mv(x).view_as(right), problem.loss, problem.curvature);
      return needed_for_right_side(
          length_on_curvature(own_logits, right - seen, problem.loss, problem.curvature), so_far);
    };
  }
  at::Tensor b = jacobian.t().mv(t.reshape({-1}));
  if (what == SolvedFor::step) b += *displacement * ridge;
  if (b.norm().item<double>() == 0) return 0;
  const DenseOperator matrix(matrix_of(at::arange(solved, at::kLong), 1));
  if (displacement && what == SolvedFor::minimum) {
    const at::Tensor guess = -*displacement;
    const double gain = (guess.dot(2 * b - matrix.apply(guess))).item<double>();
    if (gain > 0) options.initial_guess = guess;
  }
  std::int64_t iterations = 0;
  solve_in_rounds(matrix, b, options, needed,
                  [&](const auto& result) { iterations += result.summary.iterations; });
  return iterations;
}

IterationEstimate estimate_iterations(const SampledProblem& problem, std::int64_t examples,
                                      std::int64_t preconditioner) {
  const std::int64_t drawn = problem.right_side.size(0);
  const double share = static_cast<double>(preconditioner) / static_cast<double>(examples);
  const auto own = [&](std::int64_t count) {
    return std::min(std::int64_t{std::lround(share * static_cast<double>(count))}, count - 1);
  };
  const auto iterations = [&](std::int64_t count) {
    return static_cast<double>(iterations_on_sample(problem, count, own(count)));
  };
  const double now = iterations(drawn);
  if (examples <= drawn || drawn < 2) return {now, now, now};
  double power = 0;
  if (preconditioner == 0 || own(drawn / 2) > 0) {
    const double before = iterations(drawn / 2);
    if (before > 0) power = std::clamp(std::log2(std::max(now, 1.0) / before), -0.5, 0.5);
    const bool most_curved = preconditioner > 0 && !is_identity(problem.loss, problem.curvature);
    if (power < 0 && most_curved) power *= 2;
  }
  const double growth = std::pow(static_cast<double>(examples) / static_cast<double>(drawn), power);
  const auto most = static_cast<double>(most_rounds * problem.max_iterations);
  const auto possible = [&](double count) { return std::clamp(count, std::min(now, 1.0), most); };
  return {possible(now * std::min(1.0, growth)), possible(now * std::sqrt(growth)),
          possible(now * std::max(1.0, growth))};
}

}  // namespace pumice
