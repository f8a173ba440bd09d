#include "pumice/linearization/kernel_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"

namespace pumice {
namespace {

// Examples of one forward pass that are tried, and how much slower small ones are: 1 + this/chunk.
constexpr std::array<std::int64_t, 8> chunks{32, 24, 16, 12, 8, 4, 2, 1};
constexpr double cost_of_small_chunks = 2.5;
constexpr std::int64_t largest_workspace = std::int64_t{192} << 20;
// Convolutions of a network reach about half the rate of a large product
// (docs/results/training.md).
constexpr double network_share_of_product_rate = 0.5;

double pairs_of(const KernelProblem& problem) {
  const auto left = static_cast<double>(problem.left_examples);
  return problem.symmetric ? left * (left + 1) / 2
                           : left * static_cast<double>(problem.right_examples);
}

double examples_of(const KernelProblem& problem) {
  return static_cast<double>(problem.left_examples +
                             (problem.symmetric ? 0 : problem.right_examples));
}

bool is_exact(const Layer& layer, Contraction contraction, bool scaled) {
  if (scaled) return contraction == Contraction::explicit_rows;
  return contraction != Contraction::linear_tail || layer.pooled_linearly;
}

// Forming rows included, where the contraction needs them.
double layer_flops(const Layer& layer, Contraction contraction, const KernelProblem& problem) {
  const double flops = contraction_flops(layer, contraction, pairs_of(problem), problem.seeds);
  return contraction == Contraction::explicit_rows
             ? flops + row_flops(layer, examples_of(problem), problem.seeds)
             : flops;
}

double block_flops(const ColumnBlock& block, const KernelProblem& problem) {
  const auto seeds = static_cast<double>(problem.seeds);
  return 2 * pairs_of(problem) * seeds * seeds * static_cast<double>(block.columns);
}

KernelPart layer_part(const Layer& layer, std::size_t position, const KernelProblem& problem,
                      std::optional<Contraction> forced, const MachineRates& rates) {
  const double pairs = pairs_of(problem);
  const double examples = examples_of(problem);
  KernelProblem whole = problem;
  if (problem.part_of) {
    whole.left_examples = *problem.part_of;
    whole.symmetric = true;
  }
  KernelPart part;
  part.layer = position;
  part.contraction =
      problem.scaled ? Contraction::explicit_rows
      : forced && is_exact(layer, *forced, false)
          ? *forced
          : cheapest_contraction(layer, pairs_of(whole), examples_of(whole), problem.seeds, rates);
  const auto size = static_cast<std::int64_t>(c10::elementSize(problem.type));
  const std::int64_t as_rows = problem.seeds * layer.weights() * size;
  const std::int64_t as_signals =
      (layer.input_size() + problem.seeds * layer.gradient_size()) * size;
  if (part.contraction == Contraction::linear_tail) {
    part.storage = Storage::pooled;
    part.bytes_per_example = (layer.groups * layer.columns + problem.seeds * layer.outputs) * size;
  } else if (part.contraction == Contraction::explicit_rows && as_rows <= as_signals) {
    part.storage = Storage::rows;
    part.bytes_per_example = as_rows;
  } else {
    part.storage = Storage::signals;
    part.bytes_per_example = as_signals;
  }
  part.flops = layer_flops(layer, part.contraction, problem);
  part.forecast = forecast_seconds(layer, part.contraction, pairs, examples, problem.seeds, rates);
  return part;
}

KernelPart block_part(KernelPart::Kind kind, const ColumnBlock& block, const KernelProblem& problem,
                      const MachineRates& rates) {
  KernelPart part;
  part.kind = kind;
  part.bytes_per_example =
      problem.seeds * block.columns * static_cast<std::int64_t>(c10::elementSize(problem.type));
  part.flops = block_flops(block, problem);
  part.forecast = part.flops / rates.symmetric;
  return part;
}

// Everything about one way to cut the work.
class Packing {
 public:
  Packing(const LayerTable& table, const KernelProblem& problem, std::vector<KernelPart> parts,
          std::optional<std::int64_t> chunk, const MachineRates& rates)
      : table_(table),
        problem_(problem),
        parts_(std::move(parts)),
        fixed_chunk_(chunk),
        rates_(rates),
        size_(static_cast<std::int64_t>(c10::elementSize(problem.type))),
        passing_(passing_bytes(table, problem.seeds, size_)) {
    for (const KernelPart& part : parts_) {
      if (part.kind != KernelPart::Kind::layer || part.storage != Storage::rows) continue;
      passing_ += problem.seeds * table.layers[part.layer].gradient_size() * size_;
    }
  }

  // The best chunk for so many blocks.
  std::optional<KernelPlan> pack(std::int64_t blocks, std::int64_t memory) const {
    if (fixed_chunk_) return pack(blocks, *fixed_chunk_, memory);
    std::optional<KernelPlan> best;
    for (const std::int64_t chunk : chunks) {
      const std::optional<KernelPlan> plan = pack(blocks, chunk, memory);
      if (plan && (!best || plan->forecast < best->forecast)) best = plan;
    }
    return best;
  }

  // The least that any plan needs: one example at a time on each side, one part at a time.
  std::int64_t minimum() const {
    KernelPlan plan;
    plan.blocks = std::max(problem_.left_examples, problem_.right_examples);
    std::int64_t largest = 0;
    for (const KernelPart& part : parts_) largest = std::max(largest, part.bytes_per_example);
    plan.workspace = least_workspace(plan);
    plan.chunk = fixed_chunk_.value_or(1);
    return kernel_bytes() + working_bytes(plan) + largest * held_examples(plan);
  }

 private:
  std::optional<KernelPlan> pack(std::int64_t blocks, std::int64_t chunk,
                                 std::int64_t memory) const {
    KernelPlan plan;
    plan.blocks = blocks;
    plan.chunk = chunk;
    plan.workspace = std::max(least_workspace(plan),
                              std::min(largest_workspace, (memory - kernel_bytes()) / 32));
    const std::int64_t room = memory - kernel_bytes() - working_bytes(plan);
    const std::int64_t held = held_examples(plan);
    std::int64_t filled = 0, fullest = 0;
    // Filled from the input's side: what is left over are the last layers, whose signals are cheap.
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      const std::int64_t bytes = part->bytes_per_example * held;
      if (bytes > room) return std::nullopt;
      if (plan.passes.empty() || filled + bytes > room) {
        plan.passes.emplace_back();
        filled = 0;
      }
      plan.passes.back().push_back(*part);
      filled += bytes;
      fullest = std::max(fullest, filled);
    }
    plan.bytes = kernel_bytes() + working_bytes(plan) + fullest;
    count_work(plan);
    return plan;
  }

  std::int64_t kernel_bytes() const {
    return problem_.left_examples * problem_.right_examples * problem_.seeds * problem_.seeds *
           static_cast<std::int64_t>(sizeof(double));
  }

  // Examples on their way through the network, or a contraction and the sum of one part for one
  // pair of blocks: never both at once.
  std::int64_t working_bytes(const KernelPlan& plan) const {
    const std::int64_t sum = plan.left_block(problem_) * plan.right_block(problem_) *
                             problem_.seeds * problem_.seeds * size_;
    return std::max(plan.workspace + sum, plan.chunk * passing_);
  }

  std::int64_t held_examples(const KernelPlan& plan) const {
    const bool once = problem_.symmetric && plan.blocks == 1;
    return plan.left_block(problem_) + (once ? 0 : plan.right_block(problem_));
  }

  std::int64_t least_workspace(const KernelPlan& plan) const {
    std::int64_t least = 0;
    for (const KernelPart& part : parts_) {
      if (part.kind != KernelPart::Kind::layer || part.storage == Storage::rows) continue;
      least = std::max(
          least, minimal_workspace(table_.layers[part.layer], part.contraction, problem_.seeds,
                                   plan.left_block(problem_), plan.right_block(problem_), size_));
    }
    return least;
  }

  void count_work(KernelPlan& plan) const {
    const double gathered = plan.gathered_in_a_pass(problem_);
    for (const auto& pass : plan.passes) {
      std::size_t deepest = 0;
      for (const KernelPart& part : pass) {
        plan.forecast += part.forecast;
        deepest = std::max(
            deepest, part.kind == KernelPart::Kind::layer ? part.layer : table_.layers.size());
      }
      plan.signal_flops += gathered * passing_flops(table_, problem_.seeds, deepest);
    }
    plan.forecast += plan.signal_flops / (network_share_of_product_rate * rates_.product) *
                     (1 + cost_of_small_chunks / static_cast<double>(plan.chunk));
  }

  const LayerTable& table_;
  const KernelProblem& problem_;
  std::vector<KernelPart> parts_;
  std::optional<std::int64_t> fixed_chunk_;
  const MachineRates& rates_;
  std::int64_t size_;
  std::int64_t passing_;
};

}  // namespace

std::int64_t KernelPlan::left_block(const KernelProblem& problem) const {
  return (problem.left_examples + blocks - 1) / blocks;
}

std::int64_t KernelPlan::right_block(const KernelProblem& problem) const {
  return (problem.right_examples + blocks - 1) / blocks;
}

double KernelPlan::gathered_in_a_pass(const KernelProblem& problem) const {
  const auto pieces = static_cast<double>(blocks);
  const auto left = static_cast<double>(problem.left_examples);
  return problem.symmetric ? left * (pieces + 1) / 2
                           : left + static_cast<double>(problem.right_examples) * pieces;
}

KernelPlan plan_kernel(const LayerTable& table, const KernelProblem& problem, std::int64_t memory,
                       std::optional<Contraction> forced, std::optional<std::int64_t> chunk,
                       const MachineRates& rates) {
  std::vector<KernelPart> parts;
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    parts.push_back(layer_part(table.layers[i], i, problem, forced, rates));
  }
  using Kind = KernelPart::Kind;
  if (table.vectors.columns > 0) {
    parts.push_back(block_part(Kind::vectors, table.vectors, problem, rates));
  }
  if (table.slow.columns > 0) parts.push_back(block_part(Kind::slow, table.slow, problem, rates));

  const Packing packing(table, problem, std::move(parts), chunk, rates);
  const std::int64_t most = std::max(problem.left_examples, problem.right_examples);
  std::optional<KernelPlan> best;
  for (std::int64_t blocks = 1; blocks <= most; blocks = std::max(blocks + 1, blocks * 5 / 4)) {
    const std::optional<KernelPlan> plan = packing.pack(blocks, memory);
    if (plan && (!best || plan->forecast < best->forecast)) best = plan;
    // Once everything fits into one pass, more blocks only mean more work.
    if (plan && plan->passes.size() == 1) break;
  }
  if (!best) {
    const std::optional<KernelPlan> smallest = packing.pack(most, memory);
    if (smallest) return *smallest;
    fail("memory: ", bytes_text(static_cast<double>(memory)), " is too little, this kernel of ",
         problem.left_examples * problem.seeds, "×", problem.right_examples * problem.seeds,
         " rows needs at least ", bytes_text(static_cast<double>(packing.minimum())));
  }
  return *best;
}

double fewest_flops(const LayerTable& table, const KernelProblem& problem) {
  double flops = block_flops(table.vectors, problem) + block_flops(table.slow, problem) +
                 examples_of(problem) * passing_flops(table, problem.seeds, table.layers.size());
  for (const Layer& layer : table.layers) {
    double fewest = layer_flops(layer, Contraction::explicit_rows, problem);
    for (const Contraction other :
         {Contraction::hadamard, Contraction::class_sharing, Contraction::linear_tail}) {
      if (!is_exact(layer, other, problem.scaled)) continue;
      fewest = std::min(fewest, layer_flops(layer, other, problem));
    }
    flops += fewest;
  }
  return flops;
}

std::int64_t passing_bytes(const LayerTable& table, std::int64_t seeds, std::int64_t scalar_size) {
  // Each layer's input is kept by autograd, and as much again by what lies between layers (norms,
  // non-linearities); all output gradients of one backward pass are held together, and as much
  // again on the way.
  std::int64_t values = table.classes;
  for (const Layer& layer : table.layers) {
    values += 2 * layer.input_size() + 2 * layer.gradient_size();
  }
  return (values + seeds * (table.vectors.columns + table.slow.columns)) * scalar_size;
}

double passing_flops(const LayerTable& table, std::int64_t seeds, std::size_t deepest) {
  double flops = 0;
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const Layer& layer = table.layers[i];
    const double forward = 2 * static_cast<double>(layer.positions * layer.weights());
    // The gradient of the deepest layer's own input is not needed.
    flops += forward * (i < deepest ? 1 + static_cast<double>(seeds) : 1);
  }
  return flops;
}

}  // namespace pumice
