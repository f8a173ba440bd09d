#include "pumice/forgetting/method_forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/core/progress.h"
#include "pumice/forgetting/linear_shift.h"
#include "pumice/linearization/kernel_plan.h"

namespace pumice {
namespace {

MethodForecast forecast_linear(const ForgettingTask& task, const LinearProblem& problem,
                               const MethodEntry& entry, const MethodOptions& options,
                               bool& has_kernel) {
  LinearModel model = linear_model(task, options, *entry.linear);
  const bool automatic = model.solver == Solver::automatic;
  const bool sampled_all = problem.sample_size() == problem.examples();
  if (automatic && (has_kernel || sampled_all)) model.solver = Solver::dense;
  MethodForecast forecast{.method = entry.name};
  SolverChoice choice =
      choose_solver(problem, model,
                    {.cohort = static_cast<std::int64_t>(task.split.cohort.size()),
                     .difference = entry.linear->difference,
                     .has_kernel = has_kernel});
  if (automatic && has_kernel) {
    choice.reason = "the kernel of an earlier method serves";
  } else if (automatic && sampled_all) {
    choice.reason = "few enough examples that nothing else is worth asking";
  }
  const SolveForecast& chosen = choice.chosen();
  forecast.seconds = chosen.seconds;
  forecast.seconds_low = chosen.seconds_low;
  forecast.seconds_high = chosen.seconds_high;
  forecast.bytes = chosen.bytes;
  forecast.epoch_equivalents = chosen.flops / problem.epoch_flops();
  if (!chosen.fits) forecast.note = "more than the memory budget";
  has_kernel = has_kernel || choice.solver == Solver::dense;
  forecast.solver = std::move(choice);
  return forecast;
}

// Epochs on the retained examples, of which a rule may leave some out.
MethodForecast forecast_training(const ForgettingTask& task, const LinearProblem& problem,
                                 const std::string& name, double epochs, bool may_stop,
                                 double epoch) {
  const double share =
      static_cast<double>(task.split.retain.size()) / static_cast<double>(task.train.size());
  MethodForecast forecast{.method = name};
  forecast.epoch_equivalents = epochs * share;
  forecast.seconds = forecast.seconds_high = epochs * share * epoch;
  forecast.seconds_low = may_stop ? 0 : forecast.seconds;
  const std::int64_t scalar = task.weights.flat.element_size();
  const std::int64_t batch = std::min(task.recipe.batch_size, task.train.size());
  forecast.bytes = 4 * scalar * task.weights.flat.numel() +
                   batch * passing_bytes(problem.stream().network().layers(), 1, scalar);
  if (may_stop) forecast.note = "at most: it ends a few epochs after zero error";
  return forecast;
}

void add_noise(const ForgettingTask& task, const LinearProblem& problem, double pass,
               MethodForecast& forecast) {
  const auto classes = static_cast<double>(problem.classes());
  const auto retained = static_cast<double>(task.split.retain.size());
  const double seconds = (1 + 3 * classes) * retained * pass;
  forecast.seconds += seconds;
  forecast.seconds_low += seconds;
  forecast.seconds_high += seconds;
  forecast.epoch_equivalents +=
      (1 + 2 * classes) / 3 * retained / static_cast<double>(task.train.size());
}

// "about 3 min 20 s (2 min to 5 min)"
std::string time_text(const MethodForecast& forecast) {
  std::string out = duration_text(forecast.seconds);
  if (forecast.seconds_high > forecast.seconds_low) {
    out += " (" + duration_text(forecast.seconds_low) + " to " +
           duration_text(forecast.seconds_high) + ")";
  }
  return out;
}

std::string iterations_text(const IterationEstimate& iterations) {
  const auto whole = [](double value) { return std::to_string(std::lround(value)); };
  if (iterations.low == iterations.high) return whole(iterations.expected);
  return whole(iterations.expected) + " (" + whole(iterations.low) + " to " +
         whole(iterations.high) + ")";
}

}  // namespace

std::vector<MethodForecast> forecast_methods(const ForgettingTask& task, SharedProblems& shared,
                                             const std::vector<ScrubOptions>& requests) {
  const LinearProblem& problem = shared.at_weights();
  const double pass = pass_seconds(problem);
  const double epoch = 3 * pass * static_cast<double>(task.train.size());
  bool kernel_at_weights = false, kernel_at_start = false;
  std::vector<MethodForecast> forecasts;
  for (const ScrubOptions& request : requests) {
    const MethodEntry& entry = method_named(request.method);
    MethodForecast forecast{.method = entry.name};
    if (entry.linear) {
      const bool at_start =
          entry.name == "ntk" && request.options.linearize_at == LinearizeAt::start;
      forecast = forecast_linear(task, at_start ? shared.at_start() : problem, entry,
                                 request.options, at_start ? kernel_at_start : kernel_at_weights);
    } else if (entry.name == "finetune") {
      forecast =
          forecast_training(task, problem, entry.name,
                            static_cast<double>(request.options.finetune_epochs), false, epoch);
    } else if (entry.name == "retrain") {
      forecast =
          forecast_training(task, problem, entry.name, static_cast<double>(task.recipe.epochs),
                            task.recipe.epochs_after_zero_error.has_value(), epoch);
    }
    if (request.noise.scale > 0) add_noise(task, problem, pass, forecast);
    forecasts.push_back(std::move(forecast));
  }
  return forecasts;
}

nlohmann::json to_json(const MethodForecast& forecast) {
  nlohmann::json json{{"method", forecast.method},
                      {"seconds", forecast.seconds},
                      {"seconds_low", forecast.seconds_low},
                      {"seconds_high", forecast.seconds_high},
                      {"bytes", forecast.bytes},
                      {"epoch_equivalents", forecast.epoch_equivalents}};
  if (!forecast.note.empty()) json["note"] = forecast.note;
  if (forecast.solver) {
    json["solver"] = solver_name(forecast.solver->solver);
    json["reason"] = forecast.solver->reason;
    json["dense"] = to_json(forecast.solver->dense);
    json["matrix_free"] = to_json(forecast.solver->matrix_free);
  }
  return json;
}

std::string forecast_text(const std::vector<MethodForecast>& forecasts) {
  std::string out, reasons;
  const auto line = [&](const std::array<std::string, 6>& cells) {
    std::array<char, 256> row{};
    std::snprintf(row.data(), row.size(), "  %-12s %-12s %-16s %-34s %-10s %s\n", cells[0].c_str(),
                  cells[1].c_str(), cells[2].c_str(), cells[3].c_str(), cells[4].c_str(),
                  cells[5].c_str());
    out += row.data();
  };
  line({"method", "solver", "iterations", "time", "memory", "epochs' work"});
  for (const MethodForecast& forecast : forecasts) {
    std::string solver = "-", iterations = "-";
    if (forecast.solver) {
      const SolveForecast& chosen = forecast.solver->chosen();
      solver = solver_name(chosen.solver);
      if (chosen.iterations) iterations = iterations_text(*chosen.iterations);
      reasons += "  " + forecast.method + ": " + solver + ", " + forecast.solver->reason;
      if (chosen.iterations) {
        reasons += text("; preconditioner of ", chosen.preconditioner, " examples, batches of ",
                        chosen.batch);
      }
      reasons += "\n";
    }
    if (!forecast.note.empty()) reasons += "  " + forecast.method + ": " + forecast.note + "\n";
    std::array<char, 32> epochs{};
    std::snprintf(epochs.data(), epochs.size(), "%.3g", forecast.epoch_equivalents);
    line({forecast.method, solver, iterations, time_text(forecast),
          bytes_text(static_cast<double>(forecast.bytes)), epochs.data()});
  }
  return out + reasons;
}

}  // namespace pumice
