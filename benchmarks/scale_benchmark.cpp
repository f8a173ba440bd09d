// How do time and memory of a deletion request grow with the number of training examples, without
// the kernel and with it, and how good was the forecast?
//
// CIFAR-10, 10 classes, ResNet-18 at width 0.4 (or 1), fine-tuned from a body that was pre-trained
// on CIFAR-100 until it fits its training set, as a model does for which a request comes: its
// residuals are small then, and so is the curvature of its loss. (Width 1: 15 epochs from fresh
// weights, no such body is at hand.) 25 examples of the first class are forgotten by
// `consistent`. Every case runs in a process of its own, so that its peak memory is its own.
// Results are written after each case; a run that is started again does what is missing.
//
//   pumice data get cifar10
//   scale_benchmark --out FILE [--examples 500,1000,2000,5000] [--dense 500,1000,2000] [--wide 500]
//                   [--curvature identity|softmax] [--memory 2G] [--body FILE] [--random]
//   scale_benchmark --case SOLVER EXAMPLES WIDTH …     one case, in this process
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "machine.h"
#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/data/data_request.h"
#include "pumice/forgetting/forgetting_method.h"
#include "pumice/forgetting/solve_forecast.h"
#include "pumice/model/start.h"
#include "pumice/model/zoo.h"

namespace {

using namespace pumice;
using nlohmann::json;
namespace files = std::filesystem;

constexpr std::int64_t classes = 10, forgotten = 25;
constexpr std::int64_t most_epochs = 40, epochs_from_fresh = 15;
constexpr double error_of_a_fit = 0.002;  // of the training set: ends the training
constexpr double weight_decay = 0.1;

struct Options {
  std::string out, body = "weights/resnet18-w0.4-cifar100.safetensors", curvature = "identity";
  std::string memory = "2G";
  std::vector<std::int64_t> examples{500, 1000, 2000, 5000}, dense{500, 1000, 2000}, wide{500};
  bool random = false;
};

Dataset training_images(const Options& options, std::int64_t count) {
  if (!options.random) {
    return load({.spec = "cifar10",
                 .selection = {.per_class = count / classes, .test_per_class = 1}})
        .train;
  }
  torch::manual_seed(1);
  Dataset data;
  data.images = torch::randint(0, 256, {count, 3, 32, 32}).to(at::kByte);
  data.labels = torch::arange(count, at::kLong) % classes;
  for (std::int64_t i = 0; i < count; ++i) data.ids.push_back(text("train/", i));
  for (std::int64_t k = 0; k < classes; ++k) {
    data.classes.names.push_back(std::to_string(k));
    data.classes.original_labels.push_back(k);
  }
  return data;
}

std::string weights_name(const Options& options, std::int64_t count, double width) {
  return text(options.out, ".work/", options.random ? "random" : "cifar10", "-w", width, "-n",
              count, ".safetensors");
}

Start start_of(const Options& options, const Dataset& train, double width) {
  if (width == 1) return fresh_start("resnet18", width, train, 1);
  return with_fresh_head(open_checkpoint(options.body), classes, 1);
}

// Fine-tuned weights, kept for the cases with the same examples and width.
json prepare(const Options& options, std::int64_t count, double width) {
  const Dataset train = training_images(options, count);
  Start start = start_of(options, train, width);
  TrainingOptions recipe = finetuning_recipe();
  recipe.epochs = width == 1 ? epochs_from_fresh : most_epochs;
  recipe.weight_decay = weight_decay;
  Training training(*start.model, start.weights, {train, {}}, measure_normalization(train), recipe);
  const auto fits = [&] {
    const auto& history = training.state().history;
    return !history.empty() && *history.back().training_error <= error_of_a_fit;
  };
  const double seconds = benchmark::seconds_of([&] {
    while (!training.finished() && !fits()) training.run_epoch([](std::int64_t) { return true; });
  });
  files::create_directories(files::path(weights_name(options, count, width)).parent_path());
  start.model->save(weights_name(options, count, width), training.state().weights, {});
  const auto& history = training.state().history;
  return {{"epochs", history.size()},
          {"seconds", seconds},
          {"seconds_an_epoch", seconds / static_cast<double>(history.size())},
          {"training_error", *history.back().training_error}};
}

json run_case(const Options& options, Solver solver, std::int64_t count, double width) {
  const Dataset train = training_images(options, count);
  const Start start = start_of(options, train, width);
  const Checkpoint trained = open_checkpoint(weights_name(options, count, width));
  Split split;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool goes = train.labels[i].item<std::int64_t>() == 0 &&
                      static_cast<std::int64_t>(split.cohort.size()) < forgotten;
    (goes ? split.cohort : split.retain).push_back(i);
  }
  ForgettingTask task{.model = *trained.model,
                      .weights = trained.weights,
                      .centre = start.weights.flat,
                      .start = start.weights.flat,
                      .train = train,
                      .split = split,
                      .normalization = measure_normalization(train),
                      .weight_decay = weight_decay,
                      .recipe = finetuning_recipe()};
  if (solver == Solver::matrix_free) task.linear.memory = parse_bytes(options.memory);
  std::vector<json> iterations;
  task.linear.iterated = [&](const SolveProgress& progress) {
    iterations.push_back({{"solve", progress.what},
                          {"iteration", progress.iteration},
                          {"relative_residual", progress.relative_residual},
                          {"seconds", progress.seconds}});
    std::fprintf(stderr, "  %s %ld: %.2e, %.0f s\n", progress.what.c_str(),
                 static_cast<long>(progress.iteration), progress.relative_residual,
                 progress.seconds);
  };
  const double before = benchmark::bytes_of_this_process("VmRSS");
  SharedProblems shared(task);
  SolverChoice choice;
  const Curvature curvature = curvature_named(options.curvature);
  const double forecasting = benchmark::seconds_of([&] {
    choice = choose_solver(
        shared.at_weights(), {.curvature = curvature, .decay = weight_decay, .solver = solver},
        {.cohort = static_cast<std::int64_t>(split.cohort.size()), .difference = true});
  });
  ShiftResult result;
  const double seconds = benchmark::seconds_of([&] {
    result = method_named("consistent")
                 .make({.curvature = curvature, .solver = solver})
                 ->shift(task, shared);
  });
  const double peak = benchmark::bytes_of_this_process("VmHWM");
  const ForgettingSummary& summary = result.summary;
  const at::Tensor shift = (result.weights.flat - task.weights.flat).contiguous();
  torch::save(shift, weights_name(options, count, width) + "." + options.curvature + "." +
                         solver_name(solver));
  const SolveForecast& forecast = choice.chosen();
  json json{{"solver", solver_name(solver)},
            {"curvature", options.curvature},
            {"examples", count},
            {"width", width},
            {"weights", task.weights.flat.numel()},
            {"converged", summary.converged},
            {"seconds", seconds},
            {"forecasting_seconds", forecasting},
            {"forecast", to_json(forecast)},
            {"forecast_over_fact", forecast.seconds / seconds},
            {"bytes_before", before},
            {"peak_bytes", peak},
            {"bytes", peak - before},
            {"forecast_bytes_over_fact", static_cast<double>(forecast.bytes) / (peak - before)},
            {"epoch_equivalents", summary.epoch_equivalents},
            {"shift_norm", summary.shift_norm},
            {"relative_residual", *summary.relative_residual}};
  if (solver == Solver::matrix_free) {
    json["iterations"] = *summary.iterations;
    json["forecast_iterations_over_fact"] =
        forecast.iterations->expected / static_cast<double>(*summary.iterations);
    json["preconditioner"] = *summary.preconditioner;
    json["error_bound"] = *summary.error_bound;
    json["memory"] = options.memory;
    json["course"] = iterations;
  }
  if (!summary.explanation.empty()) json["explanation"] = summary.explanation;
  return json;
}

// What follows from several cases together.
void compare_cases(const Options& options, json& results) {
  std::map<double, double> seconds, bytes;
  json cosines = json::object(), ratios = json::object();
  for (const auto& [name, one] : results["cases"].items()) {
    if (!one.contains("solver") || one["solver"] != "matrix-free" || one["width"] != 0.4 ||
        one["curvature"] != options.curvature) {
      continue;
    }
    const auto count = one["examples"].get<std::int64_t>();
    seconds[static_cast<double>(count)] = one["seconds"];
    bytes[static_cast<double>(count)] = one["bytes"];
    const std::string file = weights_name(options, count, 0.4) + "." + options.curvature + ".";
    if (!files::exists(file + "dense") || !files::exists(file + "matrix-free")) continue;
    at::Tensor dense, free;
    torch::load(dense, file + "dense");
    torch::load(free, file + "matrix-free");
    cosines[std::to_string(count)] = (dense.to(at::kDouble).dot(free.to(at::kDouble)) /
                                      (dense.to(at::kDouble).norm() * free.to(at::kDouble).norm()))
                                         .item<double>();
    for (const auto& [other_name, other] : results["cases"].items()) {
      if (other.contains("solver") && other["solver"] == "dense" && other["examples"] == count &&
          other["width"] == 0.4 && other["curvature"] == options.curvature) {
        ratios[std::to_string(count)] =
            other["seconds"].get<double>() / one["seconds"].get<double>();
      }
    }
  }
  json& together = results["together"][options.curvature];
  together = {{"cosine_of_dense_and_matrix_free", cosines},
              {"dense_seconds_over_matrix_free", ratios}};
  if (seconds.size() < 2) return;
  together["fitted_exponent_of_time_in_n"] =
      benchmark::fitted_exponent({seconds.begin(), seconds.end()});
  together["bytes_of_largest_over_smallest"] = bytes.rbegin()->second / bytes.begin()->second;
}

std::string quoted(const std::string& word) {
  return "'" + word + "'";
}

std::string common_arguments(const Options& options) {
  return text(" --out ", quoted(options.out), " --curvature ", options.curvature, " --memory ",
              options.memory, " --body ", quoted(options.body), options.random ? " --random" : "");
}

json in_own_process(const std::string& program, const Options& options, const std::string& solver,
                    std::int64_t count, double width) {
  const std::string command =
      text(quoted(program), common_arguments(options), " --case ", solver, " ", count, " ", width);
  std::fprintf(stderr, "%s, %ld examples, width %g\n", solver.c_str(), static_cast<long>(count),
               width);
  return benchmark::output_of(command);
}

void all_cases(const std::string& program, const Options& options) {
  json results{{"machine", benchmark::machine_description()}, {"cases", json::object()}};
  if (files::exists(options.out)) results = json::parse(read_file(options.out));
  const auto run = [&](const std::string& solver, std::int64_t count, double width) {
    const std::string curvature = solver == "prepare" ? "" : "-" + options.curvature;
    const std::string name =
        text(solver, curvature, options.random ? "-random" : "", "-w", width, "-n", count);
    if (results["cases"].contains(name)) return;
    results["cases"][name] = in_own_process(program, options, solver, count, width);
    compare_cases(options, results);
    write_file_atomically(options.out, results.dump(2) + "\n");
  };
  for (const std::int64_t count : options.examples) {
    run("prepare", count, 0.4);
    run("matrix-free", count, 0.4);
  }
  for (const std::int64_t count : options.dense) {
    run("prepare", count, 0.4);
    run("dense", count, 0.4);
  }
  for (const std::int64_t count : options.wide) {
    run("prepare", count, 1);
    run("matrix-free", count, 1);
  }
  std::printf("%s\n", results.at("together").dump(2).c_str());
}

std::vector<std::int64_t> numbers(const std::string& list) {
  std::vector<std::int64_t> found;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    const std::int64_t count = std::stoll(word);
    if (count < 3 * forgotten || count % classes) {
      fail("examples: ", count, ", must be a multiple of ", classes, " and >= ", 3 * forgotten);
    }
    found.push_back(count);
  }
  return found;
}

int usage() {
  std::fprintf(stderr,
               "usage: scale_benchmark --out FILE [--examples N,…] [--dense N,…] [--wide N,…]\n"
               "       [--curvature identity|softmax] [--memory BYTES] [--body FILE] [--random]\n");
  return 2;
}

int run(const std::string& program, const std::vector<std::string>& words) {
  Options options;
  std::vector<std::string> single;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--random") {
      options.random = true;
      continue;
    }
    if (i + 1 >= words.size()) return usage();
    const std::string& value = words[++i];
    if (word == "--out")
      options.out = value;
    else if (word == "--body")
      options.body = value;
    else if (word == "--curvature")
      options.curvature = value;
    else if (word == "--memory")
      options.memory = value;
    else if (word == "--examples")
      options.examples = numbers(value);
    else if (word == "--dense")
      options.dense = numbers(value);
    else if (word == "--wide")
      options.wide = numbers(value);
    else if (word == "--case" && i + 2 < words.size()) {
      single = {value, words[i + 1], words[i + 2]};
      i += 2;
    } else
      return usage();
  }
  if (options.out.empty()) return usage();
  if (single.empty()) {
    all_cases(program, options);
    return 0;
  }
  const std::int64_t count = numbers(single[1]).front();
  const double width = std::stod(single[2]);
  const json result = single[0] == "prepare"
                          ? prepare(options, count, width)
                          : run_case(options, solver_named(single[0]), count, width);
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  pumice::benchmark::start_like_the_tool(arguments);
  try {
    return run(arguments[0], {arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scale_benchmark: %s\n", error.what());
    return 1;
  }
}
