#include "pumice/forgetting/solve_forecast.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/core/progress.h"
#include "pumice/linearization/kernel_plan.h"

namespace pumice {
namespace {

// LAPACK's factorization in float64 reaches about this share of the rate of a large product.
constexpr double factorization_share = 0.6;
// While a part is factorised: the kernel, the part, its symmetric copy twice, the factor.
constexpr std::int64_t kernel_copies = 5;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Each has its share of the examples and of the kernel; what their messages take is left out.
double processes(const LinearProblem& problem) {
  return static_cast<double>(problem.options().shard.count);
}

// None: the budget is too small.
std::optional<KernelPlan> plan_within(std::int64_t memory, const LinearProblem& problem,
                                      const KernelProblem& kernel) {
  try {
    return plan_kernel(problem.stream().network().layers(), kernel, memory, {}, {},
                       measured_rates(kernel.type));
  } catch (const Error&) {
    return {};
  }
}

SolveForecast forecast_dense(const LinearProblem& problem, const LinearModel& model,
                             const SolveRequest& request, double pass) {
  const ExampleStream& stream = problem.stream();
  const std::int64_t count = stream.examples(), classes = stream.classes();
  SolveForecast forecast{.solver = Solver::dense};
  const KernelProblem kernel = problem.kernel_problem(count);
  const std::int64_t square = count * classes * count * classes * 8;
  forecast.bytes = kernel_copies * square;
  // Work is what a method would take alone, as records count it; time is what is still to be done.
  forecast.flops += fewest_flops(stream.network().layers(), kernel);
  if (!problem.has_kernel() && !request.has_kernel) {
    if (const auto plan = plan_within(problem.memory(), problem, kernel)) {
      forecast.seconds += plan->forecast / processes(problem);
      forecast.bytes = std::max(forecast.bytes, plan->bytes);
    } else {
      forecast.fits = false;  // not even the kernel alone
    }
  }
  const bool curved = !is_identity(problem.loss(), model.curvature);
  const auto factorization = [&](std::int64_t examples) {
    const auto rows = static_cast<double>(examples * (curved ? classes - 1 : classes));
    return rows * rows * rows * 2 / 3;
  };
  double factorizations = factorization(count - request.cohort);
  double passes = 7;  // logits, J u, Jᵀβ
  if (request.difference) {
    factorizations += factorization(count);
    passes += 6;
  }
  forecast.flops +=
      factorizations + passes * stream.network().forward_flops() * static_cast<double>(count);
  forecast.seconds += factorizations / (factorization_share * measured_rates(at::kDouble).product) +
                      passes * pass * static_cast<double>(count) / processes(problem);
  forecast.seconds_low = forecast.seconds_high = forecast.seconds;
  forecast.fits = forecast.fits && forecast.bytes <= problem.memory();
  return forecast;
}

IterationEstimate sum(const IterationEstimate& a, const IterationEstimate& b) {
  return {a.low + b.low, a.expected + b.expected, a.high + b.high};
}

SolveForecast forecast_matrix_free(const LinearProblem& problem, const LinearModel& model,
                                   const SolveRequest& request, double pass) {
  const ExampleStream& stream = problem.stream();
  const auto count = static_cast<double>(stream.examples());
  SolveForecast forecast{.solver = Solver::matrix_free};
  forecast.batch = stream.batch_size();
  forecast.bytes = problem.fixed_bytes() + stream.batch_size() * stream.bytes_per_example();
  forecast.fits = forecast.bytes <= problem.memory();
  // Kernels of a few examples take what they may, so as to need fewer passes through the network.
  const auto plan_of = [&](std::int64_t own, std::int64_t memory) {
    const std::int64_t sum = own * stream.classes() * own * stream.classes() * 8;
    const auto plan = plan_within(memory - sum, problem, problem.kernel_problem(own));
    if (plan) {
      forecast.bytes = std::max(forecast.bytes, plan->bytes + sum + problem.memory() - memory);
    }
    return plan;
  };
  plan_of(problem.sample_size(), problem.memory());
  forecast.preconditioner = problem.preconditioner_size(model, stream.examples());
  const std::int64_t examples = stream.examples();
  SampledSolve solve{.what = SolvedFor::step};
  const bool twice = request.difference && request.cohort > 0 && request.cohort < examples;
  if (request.difference) solve.what = SolvedFor::minimum;
  if (twice) {
    solve.cohort = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(problem.sample_size() * request.cohort) / count));
  }
  const auto estimate = [&] {
    return estimate_iterations(problem.sampled(model, solve), examples, forecast.preconditioner);
  };
  IterationEstimate all = estimate();
  if (twice) {
    solve.what = SolvedFor::direction;
    all = sum(all, estimate());
  }
  forecast.iterations = all;
  const double product = stream.passes_of_product();
  const double iteration =
      product * count + (product + 1) * static_cast<double>(forecast.preconditioner);
  // Logits, J u, right-hand sides; the true residual where wlin(D) begins and at the end of each
  // round of a solve.
  const double residuals = (twice ? 4 : 1) + (model.displaced ? 1 : 0);
  const double once = 7 * count + residuals * product * count;
  const auto passes = [&](double iterations) { return iterations * iteration + once; };
  forecast.flops = passes(all.expected) * stream.network().forward_flops();
  const double own_pass = pass / processes(problem);
  forecast.seconds = passes(all.expected) * own_pass;
  forecast.seconds_low = passes(all.low) * own_pass;
  forecast.seconds_high = passes(all.high) * own_pass;
  if (problem.needs_own_kernel(model, forecast.preconditioner)) {
    forecast.flops +=
        fewest_flops(stream.network().layers(), problem.kernel_problem(forecast.preconditioner));
    if (const auto plan = plan_of(forecast.preconditioner, problem.memory_beside_vectors())) {
      for (double* seconds : {&forecast.seconds, &forecast.seconds_low, &forecast.seconds_high}) {
        *seconds += plan->forecast / processes(problem);
      }
    } else {
      forecast.fits = false;
    }
  }
  return forecast;
}

}  // namespace

double pass_seconds(const LinearProblem& problem) {
  const ExampleStream& stream = problem.stream();
  const std::int64_t count = std::min(stream.batch_size(), stream.examples());
  const at::Tensor inputs =
      stream.inputs().first(count).to(stream.network().weights().flat.scalar_type());
  const LogitMap identity = [](const at::Tensor&, const at::Tensor& x) { return x; };
  const auto product = [&] {
    gauss_newton_product(stream.network().model(), stream.network().weights(),
                         problem.displacement(), inputs, identity, stream.network().tangent_mode());
  };
  product();  // warms up: primitives are made at the first call
  const double once = std::min(seconds_of(product), seconds_of(product));
  return once / (stream.passes_of_product() * static_cast<double>(count));
}

nlohmann::json to_json(const SolveForecast& forecast) {
  nlohmann::json json{{"solver", solver_name(forecast.solver)},
                      {"seconds", forecast.seconds},
                      {"seconds_low", forecast.seconds_low},
                      {"seconds_high", forecast.seconds_high},
                      {"bytes", forecast.bytes},
                      {"flops", forecast.flops},
                      {"fits", forecast.fits}};
  if (forecast.iterations) {
    json["iterations"] = {{"low", forecast.iterations->low},
                          {"expected", forecast.iterations->expected},
                          {"high", forecast.iterations->high}};
    json["preconditioner"] = forecast.preconditioner;
    json["batch"] = forecast.batch;
  }
  return json;
}

SolverChoice choose_solver(const LinearProblem& problem, const LinearModel& model,
                           const SolveRequest& request) {
  const double pass = pass_seconds(problem);
  SolverChoice choice{.dense = forecast_dense(problem, model, request, pass),
                      .matrix_free = forecast_matrix_free(problem, model, request, pass),
                      .reason = {}};
  const SolveForecast& dense = choice.dense;
  const SolveForecast& free = choice.matrix_free;
  const bool faster = dense.fits && (!free.fits || dense.seconds <= free.seconds);
  choice.solver = model.solver != Solver::automatic ? model.solver
                  : faster                          ? Solver::dense
                                                    : Solver::matrix_free;
  const at::Tensor agreed = problem.stream().as_the_first_process_says(
      at::tensor({choice.solver == Solver::dense ? 1.0 : 0.0}, at::kDouble));
  choice.solver = agreed.item<double>() > 0 ? Solver::dense : Solver::matrix_free;
  if (model.solver != Solver::automatic) {
    choice.reason = "as asked for";
  } else if (!dense.fits) {
    choice.reason =
        text("dense needs ", bytes_text(static_cast<double>(dense.bytes)), ", more than the ",
             bytes_text(static_cast<double>(problem.memory())), " of the budget");
  } else {
    choice.reason = text("dense about ", duration_text(dense.seconds), ", matrix-free about ",
                         duration_text(free.seconds));
  }
  return choice;
}

}  // namespace pumice
