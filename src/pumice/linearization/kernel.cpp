#include "pumice/linearization/kernel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/core/progress.h"
#include "pumice/linalg/blas.h"

namespace pumice {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

KernelLayerSummary describe(const KernelPart& part, const LayerTable& table) {
  KernelLayerSummary summary;
  summary.flops = part.flops;
  summary.forecast = part.forecast;
  summary.bytes_per_example = part.bytes_per_example;
  summary.contraction = contraction_name(part.contraction);
  if (part.kind == KernelPart::Kind::layer) {
    const Layer& layer = table.layers[part.layer];
    summary.name = layer.name;
    summary.operation = layer.uses.size() > 1 ? layer.operation + ", tied" : layer.operation;
    summary.positions = layer.positions;
    summary.columns = layer.columns;
    summary.outputs = layer.outputs;
    summary.groups = layer.groups;
    summary.parameters = layer.weights();
  } else {
    const bool vectors = part.kind == KernelPart::Kind::vectors;
    summary.name = vectors ? "biases and norms" : "without a rule";
    summary.operation = vectors ? "sums" : "one example at a time";
    summary.parameters = vectors ? table.vectors.columns : table.slow.columns;
  }
  return summary;
}

class Computation {
 public:
  Computation(const Examples& left, const Examples* right, const KernelOptions& options)
      : left_(left), right_(right ? *right : left), options_(options), symmetric_(!right) {
    problem_ = {.left_examples = left_.count(),
                .right_examples = right_.count(),
                .symmetric = symmetric_,
                .seeds = left_.rows_each(),
                .type = left_.weights.flat.scalar_type(),
                .scaled = options.variance.has_value(),
                .part_of = options.part_of};
    if (right_.rows_each() != problem_.seeds) {
      fail("kernel: ", problem_.seeds, " rows for each example on the left and ",
           right_.rows_each(), " on the right, must be the same number");
    }
    const MachineRates rates = measured_rates(problem_.type);
    const std::int64_t memory = options.memory ? *options.memory : available_memory() / 2;
    plan_ = plan_kernel(left_.table, problem_, memory, options.contraction, options.chunk, rates);
    kernel_.summary.memory = memory;
    kernel_.summary.product_rate = rates.product;
    if (options.variance) factors_ = options.variance->sqrt().to(problem_.type);
  }

  Kernel run() {
    const SerialBlas serial;
    const auto start = Clock::now();
    kernel_.theta = at::zeros(
        {problem_.left_examples * problem_.seeds, problem_.right_examples * problem_.seeds},
        at::kDouble);
    for (std::size_t i = 0; i < plan_.passes.size(); ++i) {
      if (i > 0) release_freed_memory();
      run_pass(plan_.passes[i]);
    }
    if (symmetric_) mirror_lower_triangle(kernel_.theta);
    summarize(seconds_since(start));
    return std::move(kernel_);
  }

 private:
  void run_pass(const std::vector<KernelPart>& pass) {
    const std::size_t first = kernel_.summary.layers.size();
    for (const KernelPart& part : pass) {
      kernel_.summary.layers.push_back(describe(part, left_.table));
    }
    const std::int64_t left_block = plan_.left_block(problem_);
    const std::int64_t right_block = plan_.right_block(problem_);
    for (std::int64_t i = 0; i < problem_.left_examples; i += left_block) {
      const std::int64_t i_end = std::min(i + left_block, problem_.left_examples);
      std::vector<StoredPart> left = collect(left_, i, i_end, pass);
      const std::int64_t last = symmetric_ ? i + 1 : problem_.right_examples;
      // The block with itself comes last: what it keeps is no longer needed then.
      for (std::int64_t j = 0; j < last; j += right_block) {
        const bool with_itself = symmetric_ && i == j;
        const std::int64_t j_end = std::min(j + right_block, problem_.right_examples);
        std::vector<StoredPart> right;
        if (!with_itself) right = collect(right_, j, j_end, pass);
        for (std::size_t part = 0; part < pass.size(); ++part) {
          at::Tensor target =
              kernel_.theta.narrow(0, i * problem_.seeds, (i_end - i) * problem_.seeds)
                  .narrow(1, j * problem_.seeds, (j_end - j) * problem_.seeds);
          const auto start = Clock::now();
          add_part(pass[part], left[part], with_itself ? left[part] : right[part], target);
          kernel_.summary.layers[first + part].seconds += seconds_since(start);
          if (with_itself) {
            left[part] = {};
          } else {
            right[part] = {};
          }
          report(pass[part].forecast * pair_share(i_end - i, j_end - j, with_itself));
        }
      }
    }
  }

  double pair_share(std::int64_t left, std::int64_t right, bool with_itself) const {
    const auto all = static_cast<double>(problem_.left_examples * problem_.right_examples);
    const auto own = static_cast<double>(left * right);
    return symmetric_ ? own * (with_itself ? 1 : 2) / all : own / all;
  }

  std::vector<StoredPart> collect(const Examples& side, std::int64_t begin, std::int64_t end,
                                  const std::vector<KernelPart>& pass) {
    const auto start = Clock::now();
    const double contraction_forecast = contractions_forecast();
    const double share =
        (plan_.forecast - contraction_forecast) /
        (static_cast<double>(plan_.passes.size()) * plan_.gathered_in_a_pass(problem_));
    std::vector<StoredPart> stored = gather(
        side, begin, end, pass, plan_.chunk, factors_,
        [&](const at::Tensor& logits) { report(share * static_cast<double>(logits.size(0))); });
    kernel_.summary.signal_seconds += seconds_since(start);
    return stored;
  }

  double contractions_forecast() const {
    double forecast = 0;
    for (const auto& pass : plan_.passes) {
      for (const KernelPart& part : pass) forecast += part.forecast;
    }
    return forecast;
  }

  // `target` += the part's contribution for a pair of blocks; sums over layers are in float64.
  void add_part(const KernelPart& part, const StoredPart& left, const StoredPart& right,
                at::Tensor& target) {
    at::Tensor sum = at::zeros(target.sizes(), left_.weights.flat.options().requires_grad(false));
    if (part.storage == Storage::rows || part.kind != KernelPart::Kind::layer) {
      contract_rows(left.rows, right.rows, sum);
    } else {
      const Layer& layer = left_.table.layers[part.layer];
      ContractionOptions options{.workspace = plan_.workspace};
      if (factors_.defined()) {
        options.scale = layer_factors(layer, *left_.weights.layout, factors_);
      }
      contract(part.storage == Storage::pooled ? pooled_layer(layer) : layer, part.contraction,
               left.signals, right.signals, options, sum);
    }
    // LibTorch would first make a float64 copy of the whole sum; of a few rows at a time it is
    // small.
    constexpr std::int64_t rows_at_once = 128;
    for (std::int64_t row = 0; row < sum.size(0); row += rows_at_once) {
      const std::int64_t rows = std::min(rows_at_once, sum.size(0) - row);
      target.narrow(0, row, rows).add_(sum.narrow(0, row, rows));
    }
  }

  void report(double seconds) {
    done_ += seconds;
    if (options_.progress) options_.progress(std::min(1.0, done_ / plan_.forecast));
  }

  void summarize(double seconds) {
    KernelSummary& summary = kernel_.summary;
    summary.rows = kernel_.theta.size(0);
    summary.columns = kernel_.theta.size(1);
    summary.weights = left_.weights.layout->total();
    summary.passes = static_cast<std::int64_t>(plan_.passes.size());
    summary.blocks = plan_.blocks;
    summary.chunk = plan_.chunk;
    summary.planned_bytes = plan_.bytes;
    summary.signal_flops = plan_.signal_flops;
    summary.forecast = plan_.forecast;
    summary.seconds = seconds;
    summary.slow = without_rule(left_.table, *left_.weights.layout);
  }

  const Examples& left_;
  const Examples& right_;
  const KernelOptions& options_;
  bool symmetric_;
  KernelProblem problem_;
  KernelPlan plan_;
  at::Tensor factors_;
  Kernel kernel_;
  double done_ = 0;
};

std::string line(const char* format, auto... values) {
  std::array<char, 256> out{};
  std::snprintf(out.data(), out.size(), format, values...);
  return out.data();
}

}  // namespace

void mirror_lower_triangle(at::Tensor& matrix) {
  constexpr std::int64_t tile = 256;
  const std::int64_t size = matrix.size(0);
  for (std::int64_t row = 0; row < size; row += tile) {
    const std::int64_t rows = std::min(tile, size - row);
    for (std::int64_t column = 0; column < row; column += tile) {
      const at::Tensor lower = matrix.narrow(0, row, rows).narrow(1, column, tile);
      matrix.narrow(0, column, tile).narrow(1, row, rows).copy_(lower.t());
    }
    at::Tensor diagonal = matrix.narrow(0, row, rows).narrow(1, row, rows);
    diagonal.copy_(diagonal.tril() + diagonal.tril(-1).t());
  }
}

Kernel compute_kernel(const Examples& left, const Examples* right, const KernelOptions& options) {
  return Computation(left, right, options).run();
}

double KernelSummary::flops() const {
  double total = signal_flops;
  for (const KernelLayerSummary& layer : layers) total += layer.flops;
  return total;
}

std::string KernelSummary::brief() const {
  std::string text =
      line("kernel %lld×%lld of %lld weights: %s, %.3g TFLOP, %.0f %% of the product rate",
           static_cast<long long>(rows), static_cast<long long>(columns),
           static_cast<long long>(weights), duration_text(seconds).c_str(), flops() / 1e12,
           100 * flops() / seconds / product_rate);
  if (!slow.empty()) {
    text += line("; %zu parameters without a rule, one example at a time", slow.size());
  }
  return text;
}

std::string KernelSummary::full() const {
  std::string text = brief() + "\n";
  text +=
      line("%lld passes, %lld blocks, %lld examples at a time; planned %s of %s\n",
           static_cast<long long>(passes), static_cast<long long>(blocks),
           static_cast<long long>(chunk), bytes_text(static_cast<double>(planned_bytes)).c_str(),
           bytes_text(static_cast<double>(memory)).c_str());
  text += line("%-28s %6s %6s %5s  %-13s %9s %8s %8s\n", "layer", "T", "K", "O", "contraction",
               "GFLOP", "forecast", "seconds");
  text += line("%-28s %6s %6s %5s  %-13s %9.1f %8s %8.2f\n", "signals (all passes)", "", "", "", "",
               signal_flops / 1e9, "", signal_seconds);
  for (const KernelLayerSummary& layer : layers) {
    const auto number = [](std::int64_t value) { return value ? std::to_string(value) : "-"; };
    text += line("%-28s %6s %6s %5s  %-13s %9.1f %8.2f %8.2f\n", layer.name.c_str(),
                 number(layer.positions).c_str(), number(layer.columns).c_str(),
                 number(layer.outputs).c_str(), layer.contraction.c_str(), layer.flops / 1e9,
                 layer.forecast, layer.seconds);
  }
  for (const std::string& parameter : slow) text += "without a rule: " + parameter + "\n";
  return text;
}

nlohmann::json to_json(const KernelSummary& summary) {
  nlohmann::json layers = nlohmann::json::array();
  for (const KernelLayerSummary& layer : summary.layers) {
    layers.push_back({{"name", layer.name},
                      {"operation", layer.operation},
                      {"positions", layer.positions},
                      {"columns", layer.columns},
                      {"outputs", layer.outputs},
                      {"groups", layer.groups},
                      {"parameters", layer.parameters},
                      {"contraction", layer.contraction},
                      {"bytes_per_example", layer.bytes_per_example},
                      {"flops", layer.flops},
                      {"forecast_seconds", layer.forecast},
                      {"seconds", layer.seconds}});
  }
  return {{"rows", summary.rows},
          {"columns", summary.columns},
          {"weights", summary.weights},
          {"passes", summary.passes},
          {"blocks", summary.blocks},
          {"chunk", summary.chunk},
          {"planned_bytes", summary.planned_bytes},
          {"memory_budget", summary.memory},
          {"flops", summary.flops()},
          {"signal_flops", summary.signal_flops},
          {"signal_seconds", summary.signal_seconds},
          {"forecast_seconds", summary.forecast},
          {"seconds", summary.seconds},
          {"product_rate", summary.product_rate},
          {"without_rule", summary.slow},
          {"layers", layers}};
}

}  // namespace pumice
