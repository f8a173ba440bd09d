#include "pumice/forgetting/linear_problem.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"

namespace pumice {
namespace {

// More examples at once do not make a pass faster (docs/scale.md).
constexpr std::int64_t largest_batch = 64;

std::vector<std::int64_t> all_of(std::int64_t count) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

template <typename Number>
std::optional<Number> larger(const std::optional<Number>& first,
                             const std::optional<Number>& second) {
  return first && second ? std::max(*first, *second) : first ? first : second;
}

}  // namespace

SolveReport worse(const SolveReport& first, const SolveReport& second) {
  SolveReport both = first.converged ? second : first;
  both.relative_residual = std::max(first.relative_residual, second.relative_residual);
  both.condition_estimate = larger(first.condition_estimate, second.condition_estimate);
  both.error_bound = larger(first.error_bound, second.error_bound);
  both.preconditioner = larger(first.preconditioner, second.preconditioner);
  if (first.near_enough) both.near_enough = *first.near_enough && second.near_enough.value_or(true);
  if (first.iterations && second.iterations) {
    both.iterations = *first.iterations + *second.iterations;
  }
  return both;
}

Solver solver_named(const std::string& name) {
  if (name == "auto") return Solver::automatic;
  if (name == "dense") return Solver::dense;
  if (name == "matrix-free") return Solver::matrix_free;
  fail("solver: '", name, "' is unknown", suggestion(name, {"auto", "dense", "matrix-free"}));
}

std::string solver_name(Solver solver) {
  return solver == Solver::automatic ? "auto" : solver == Solver::dense ? "dense" : "matrix-free";
}

LinearProblem::LinearProblem(const Model& model, const Weights& weights, InputSource inputs,
                             const at::Tensor& labels, const at::Tensor& centre, Loss loss,
                             LinearProblemOptions options)
    : stream_(model, weights, std::move(inputs),
              {.shard = options.shard, .sum_over_processes = options.sum_over_processes}),
      labels_(labels),
      loss_(loss),
      options_(std::move(options)) {
  if (centre.dim() != 1 || centre.numel() != stream_.columns()) {
    fail("centre of the decay: ", centre.numel(), " values, must be ", stream_.columns());
  }
  if (labels.numel() != examples()) {
    fail("labels: ", labels.numel(), ", must be one for each of ", examples(), " examples");
  }
  displacement_ = weights.flat.detach().to(at::kDouble) - centre.to(at::kDouble);
  if (options_.progress) {
    stream_.set_after_batch([told = told_, progress = options_.progress](double) {
      progress(told->what, told->share);
    });
  }
  const std::int64_t room = (memory() - fixed_bytes()) / stream_.bytes_per_example();
  stream_.set_batch_size(std::clamp<std::int64_t>(room, 1, largest_batch));
}

const Linearization& LinearProblem::linearization() const {
  if (!linearization_) {
    linearization_.emplace(stream_.network().with_inputs(stream_.inputs().all()));
  }
  return *linearization_;
}

double LinearProblem::epoch_flops() const {
  return 3 * stream_.network().forward_flops() * static_cast<double>(examples());
}

void LinearProblem::count_passes(double forward_passes, std::size_t examples) const {
  flops_ += forward_passes * stream_.network().forward_flops() * static_cast<double>(examples);
}

void LinearProblem::begin_count() const {
  flops_ = 0;
  counted_.clear();
}

void LinearProblem::count_once(Shared part, double flops) const {
  if (counted_.insert(part).second) flops_ += flops;
}

KernelProblem LinearProblem::kernel_problem(std::int64_t examples) const {
  return {.left_examples = examples,
          .right_examples = examples,
          .symmetric = true,
          .seeds = classes(),
          .type = stream_.network().weights().flat.scalar_type()};
}

double LinearProblem::kernel_flops(std::int64_t examples) const {
  return fewest_flops(stream_.network().layers(), kernel_problem(examples));
}

// The kernel of a sample, its logits and its tangents.
double LinearProblem::sample_flops(std::int64_t examples) const {
  return kernel_flops(examples) +
         4 * stream_.network().forward_flops() * static_cast<double>(examples);
}

void LinearProblem::report(const std::string& what, double share) const {
  *told_ = {what, share};
  if (options_.progress) options_.progress(what, share);
}

const at::Tensor& LinearProblem::logits() const {
  if (!logits_.defined()) logits_ = stream_.logits(all_of(examples()));
  count_once(Shared::logits, epoch_flops() / 3);
  return logits_;
}

const at::Tensor& LinearProblem::residual() const {
  const at::Tensor& logits = this->logits();  // asked for each time: it is counted
  if (!residual_.defined()) residual_ = residuals(logits, labels_, loss_);
  return residual_;
}

const at::Tensor& LinearProblem::displaced() const {
  if (!displaced_.defined()) displaced_ = stream_.jvp(all_of(examples()), displacement_);
  count_once(Shared::displaced, epoch_flops());
  return displaced_;
}

const Kernel& LinearProblem::kernel() const {
  if (!kernel_) {
    KernelOptions options;
    options.memory = memory();
    options.progress = [this](double share) { report("kernel", share); };
    if (options_.shard.count > 1) {
      if (!options_.gather_tiles) {
        fail("kernel: one of ", options_.shard.count, " processes, must have a way to gather it");
      }
      kernel_ = tiled_kernel(stream_, options_.shard, options_.gather_tiles, options);
    } else {
      kernel_ = linearization().kernel(options);
    }
  }
  count_once(Shared::kernel, kernel_flops(examples()));
  return *kernel_;
}

at::Tensor LinearProblem::pull(const at::Tensor& coefficients) const {
  flops_ += epoch_flops();
  return stream_.vjp(all_of(examples()), coefficients);
}

at::Tensor LinearProblem::right_side(const LinearModel& model) const {
  if (!model.displaced) return residual();
  return residual() - curvature_product(logits(), displaced(), loss_, model.curvature);
}

LinearProblem::Displacement LinearProblem::wlin(const Positions& examples,
                                                const LinearModel& model) const {
  if (!(model.decay > 0) || !std::isfinite(model.decay)) {
    fail("weight decay: ", model.decay, ", must be > 0 for a solve with a ridge");
  }
  const bool dense = model.solver == Solver::dense;
  // Training on nothing leaves the weights at the centre of the decay.
  if (examples.empty()) {
    Displacement none{.value = at::zeros_like(displacement_), .coefficients = {}, .report = {}};
    if (dense) none.coefficients = at::zeros_like(residual());
    return none;
  }
  return dense ? wlin_dense(examples, model) : wlin_matrix_free(examples, model, {});
}

LinearProblem::Displacement LinearProblem::step(const Positions& examples,
                                                const LinearModel& model) const {
  assert(model.displaced);
  if (model.solver == Solver::matrix_free && !examples.empty() && model.decay > 0) {
    return step_matrix_free(examples, model);
  }
  Displacement result = wlin(examples, model);
  if (result.value.defined()) result.value = result.value - displacement_;
  result.coefficients = at::Tensor();
  return result;
}

DualSolution LinearProblem::solve_with_kernel(const Positions& examples,
                                              const LinearModel& model) const {
  // All processes take part in what goes before; only the first has the kernel.
  const Kernel& whole = kernel();
  const at::Tensor right = chosen(right_side(model), examples);
  DualSolution solution;
  if (whole.theta.defined()) {
    solution = solve_dual({kernel_of(whole.theta, examples, classes()),
                           curvature_root(chosen(logits(), examples), loss_, model.curvature)},
                          model.decay * static_cast<double>(examples.size()), right);
  }
  if (options_.shard.count == 1) return solution;
  const at::Tensor numbers = stream_.as_the_first_process_says(at::tensor(
      {solution.succeeded() ? 1.0 : 0.0, solution.relative_residual, solution.condition_estimate},
      at::kDouble));
  solution.factorization.succeeded = numbers[0].item<double>() == 1;
  if (!solution.factorization.succeeded) return solution;
  solution.relative_residual = numbers[1].item<double>();
  solution.condition_estimate = numbers[2].item<double>();
  solution.coefficients = stream_.as_the_first_process_says(
      solution.coefficients.defined() ? solution.coefficients : at::zeros_like(right));
  return solution;
}

LinearProblem::Displacement LinearProblem::wlin_dense(const Positions& examples,
                                                      const LinearModel& model) const {
  const DualSolution solution = solve_with_kernel(examples, model);
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
  result.coefficients.index_copy_(0, at::tensor(examples, at::kLong), -solution.coefficients);
  result.value = pull(result.coefficients);
  return result;
}

LinearProblem::Direction LinearProblem::direction(const Positions& cohort, const Positions& retain,
                                                  const LinearModel& model) const {
  assert(static_cast<std::int64_t>(cohort.size() + retain.size()) == examples());
  if (model.solver == Solver::matrix_free && !cohort.empty() && !retain.empty()) {
    return direction_matrix_free(cohort, retain, model);
  }
  Direction result;
  result.all = wlin(all_of(examples()), model);
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
  result.retain = wlin(retain, model);
  result.report = worse(result.all.report, result.retain.report);
  if (!result.retain.value.defined()) return result;
  if (model.solver == Solver::dense) {
    result.coefficients = result.retain.coefficients - result.all.coefficients;
    result.value = pull(result.coefficients);
  } else {
    result.value = result.retain.value - result.all.value;
  }
  return result;
}

}  // namespace pumice
