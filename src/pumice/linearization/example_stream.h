// Products with the Jacobian whose memory does not grow with the number of examples: batch by
// batch, and over the examples of several processes.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "pumice/data/input_source.h"
#include "pumice/linearization/linearization.h"

namespace pumice {

// Which of the examples are this process's own: those whose position leaves the remainder `index`
// when divided by `count`. By the position in the data set, not in a part of it: an example has one
// owner, whatever is asked of it.
struct Shard {
  std::int64_t index = 0, count = 1;

  bool owns(std::int64_t position) const { return position % count == index; }
};

struct ExampleStreamOptions {
  Shard shard = {};
  // Replaces a tensor (float64, contiguous) by its sum over all processes, on all of them with the
  // same bits. Called once for each sum over examples, by all processes in the same order. Empty:
  // there is one process.
  std::function<void(at::Tensor&)> sum_over_processes = {};
  // After each batch: which share of this process's part of the sum is done. May throw to give up.
  std::function<void(double share)> after_batch = {};
};

// The curvature of the loss with respect to the logits: H, symmetric and positive semi-definite, a
// block for each example. Both empty: H = I.
struct LogitCurvature {
  LogitMap product = {};                                          // (f, x) → H(f) x, n×c
  std::function<at::Tensor(const at::Tensor& logits)> root = {};  // f → R, n×c×k with H = R Rᵀ

  bool is_identity() const { return !product; }
};

// The network linearised at fixed weights, at N examples that are read when they are needed. Parts
// of them are lists of positions; row = place in the list · c + class. With several processes, each
// computes its own examples' share and all get the same result.
//
// Memory: one batch on its way through the network (bytes_per_example() each) and two vectors of p
// numbers. Results in float64.
class ExampleStream {
 public:
  using Positions = std::vector<std::int64_t>;

  // Examines the first few examples as Linearization does, and throws what it throws. `model` must
  // outlive this object.
  ExampleStream(const Model& model, Weights weights, InputSource inputs,
                ExampleStreamOptions options = {});

  std::int64_t examples() const { return inputs_.size(); }     // N
  std::int64_t classes() const { return network_.classes(); }  // c
  std::int64_t columns() const { return network_.columns(); }  // p
  const Linearization& network() const { return network_; }    // at the first few examples
  const InputSource& inputs() const { return inputs_; }
  const ExampleStreamOptions& options() const { return options_; }

  // Examples of one pass through the network; results do not depend on it, apart from rounding.
  void set_batch_size(std::int64_t examples);
  std::int64_t batch_size() const { return batch_size_; }
  void set_after_batch(std::function<void(double share)> told) {
    options_.after_batch = std::move(told);
  }
  // Bytes of one example during gauss_newton_product(), the hungriest of the products: an estimate.
  std::int64_t bytes_per_example() const;
  // FLOPs of gauss_newton_product() for one example, in forward passes.
  double passes_of_product() const;

  at::Tensor logits(const Positions& examples) const;                             // n×c
  at::Tensor jvp(const Positions& examples, const at::Tensor& direction) const;   // J v: n×c
  at::Tensor vjp(const Positions& examples, const at::Tensor& cotangents) const;  // Jᵀ u: p
  // Jᵀ H J v: p. One pass: forwards with its tangent, H, backwards, on the same batch.
  at::Tensor gauss_newton_product(const Positions& examples, const at::Tensor& direction,
                                  const LogitCurvature& curvature) const;

  // Some of the examples of a part that are this process's own.
  struct Batch {
    at::Tensor places;  // in the list of the part, int64, ascending
    at::Tensor inputs;  // in the precision of the weights
  };
  // Every sum over examples is made here, and nowhere else: `add` puts each batch of this process's
  // own examples into the sum (float64 zeros of this shape at first), then the sums of all
  // processes are added. Rows that belong to one example each are a sum, too: of tensors that are
  // zero everywhere else. `at_once`: the examples of a batch, if not batch_size().
  at::Tensor sum(const Positions& examples, at::IntArrayRef shape,
                 const std::function<void(const Batch&, at::Tensor& sum)>& add,
                 std::optional<std::int64_t> at_once = {}) const;

  // What the first process computed, on all of them: for numbers that need not come out the same
  // twice (clocks, other processors) but that all have to agree on. float64.
  at::Tensor as_the_first_process_says(at::Tensor value) const;

 private:
  void add_over_processes(at::Tensor& sum) const;

  InputSource inputs_;
  Linearization network_;
  ExampleStreamOptions options_;
  std::int64_t batch_size_ = 64;
};

}  // namespace pumice
