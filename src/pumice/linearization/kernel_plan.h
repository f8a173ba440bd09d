// How a kernel is computed within a memory budget: which contraction for which layer, what is kept
// of each example meanwhile, and how often the signals are computed anew because not everything
// fits at once.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/linearization/contraction.h"
#include "pumice/linearization/cost_model.h"
#include "pumice/linearization/layer_table.h"

namespace pumice {

// What is kept of an example until the contraction: rows of the Jacobian, signals, or signals
// summed over positions.
enum class Storage { rows, signals, pooled };

// A part of the kernel that is a sum of its own: a layer, all biases and norms together, or the
// parameters without a rule.
struct KernelPart {
  enum class Kind { layer, vectors, slow };
  Kind kind = Kind::layer;
  std::size_t layer = 0;  // of the table, if kind is layer
  Contraction contraction = Contraction::explicit_rows;
  Storage storage = Storage::rows;
  std::int64_t bytes_per_example = 0;
  double flops = 0;     // of the contraction, and of forming rows where it needs them
  double forecast = 0;  // seconds
};

struct KernelProblem {
  std::int64_t left_examples = 0;
  std::int64_t right_examples = 0;
  bool symmetric = true;   // left and right are the same set
  std::int64_t seeds = 0;  // rows of each example
  at::ScalarType type = at::kFloat;
  bool scaled = false;                       // J Σ Jᵀ: only explicit rows are exact
  std::optional<std::int64_t> part_of = {};  // see KernelOptions
};

// Examples are cut into `blocks` on each side. For every pass: gather block I of the left, then
// each block J of the right (J ≤ I if symmetric), and contract. With one block nothing is gathered
// twice within a pass.
struct KernelPlan {
  std::vector<std::vector<KernelPart>> passes;
  std::int64_t blocks = 1;
  std::int64_t chunk = 1;      // examples of one forward pass
  std::int64_t workspace = 0;  // bytes for contractions
  std::int64_t bytes = 0;      // peak, by this plan
  double signal_flops = 0;     // forward and backward passes, all of them
  double forecast = 0;         // seconds, all in all

  std::int64_t left_block(const KernelProblem& problem) const;
  std::int64_t right_block(const KernelProblem& problem) const;
  // Examples that go through the network in one pass, with repetitions.
  double gathered_in_a_pass(const KernelProblem& problem) const;
};

// `forced`: use this contraction wherever it is exact. `chunk`: fixes the examples of one forward
// pass. Throws Error that states the minimum if `memory` bytes are too few.
KernelPlan plan_kernel(const LayerTable& table, const KernelProblem& problem, std::int64_t memory,
                       std::optional<Contraction> forced, std::optional<std::int64_t> chunk,
                       const MachineRates& rates);

// FLOPs of the plan that needs the fewest: every layer by its cheapest contraction, signals
// computed once. What was spent depends on the memory and on measured speeds, this does not.
double fewest_flops(const LayerTable& table, const KernelProblem& problem);

// Bytes of one example while it goes through the network forwards and backwards: an estimate, from
// what the layers read and write.
std::int64_t passing_bytes(const LayerTable& table, std::int64_t seeds, std::int64_t scalar_size);

// FLOPs of one example through the network: forwards, and `seeds` times backwards as far as
// `deepest` (a position in table.layers).
double passing_flops(const LayerTable& table, std::int64_t seeds, std::size_t deepest);

}  // namespace pumice
