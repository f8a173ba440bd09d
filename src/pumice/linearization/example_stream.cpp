#include "pumice/linearization/example_stream.h"

#include <algorithm>
#include <cassert>

#include "pumice/core/error.h"
#include "pumice/linearization/kernel_plan.h"

namespace pumice {
namespace {

constexpr std::int64_t examined_examples = 3;
// A pass with tangents keeps what a backward pass keeps, and the tangents of all that; measured on
// ResNet-18: 1.9 (docs/scale.md).
constexpr double memory_of_tangents = 2;

std::int64_t count_of(const ExampleStream::Positions& examples) {
  return static_cast<std::int64_t>(examples.size());
}

}  // namespace

ExampleStream::ExampleStream(const Model& model, Weights weights, InputSource inputs,
                             ExampleStreamOptions options)
    : inputs_(std::move(inputs)),
      network_(model, std::move(weights),
               inputs_.first(std::min(examined_examples, inputs_.size()))),
      options_(std::move(options)) {
  const Shard& shard = options_.shard;
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count) {
    fail("shard: ", shard.index, " of ", shard.count, ", must be 0 … count-1");
  }
  if (shard.count > 1 && !options_.sum_over_processes) {
    fail("shard: one of ", shard.count, ", must have a way to sum over processes");
  }
}

void ExampleStream::set_batch_size(std::int64_t examples) {
  if (examples < 1) fail("batch size: ", examples, ", must be >= 1");
  batch_size_ = examples;
}

std::int64_t ExampleStream::bytes_per_example() const {
  return static_cast<std::int64_t>(
      memory_of_tangents * static_cast<double>(passing_bytes(
                               network_.layers(), 1, network_.weights().flat.element_size())));
}

double ExampleStream::passes_of_product() const {
  // Forwards, two for the tangent, two backwards; or once forwards, two backwards, three for their
  // derivative, and forwards and backwards again.
  return network_.tangent_mode() == TangentMode::forward ? 5 : 9;
}

at::Tensor ExampleStream::sum(const Positions& examples, at::IntArrayRef shape,
                              const std::function<void(const Batch&, at::Tensor& sum)>& add,
                              std::optional<std::int64_t> at_once) const {
  at::Tensor result = at::zeros(shape, at::kDouble);
  std::vector<std::int64_t> places, positions;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (examples[i] < 0 || examples[i] >= this->examples()) {
      fail("example ", examples[i], ": must be in 0 … ", this->examples() - 1);
    }
    if (!options_.shard.owns(examples[i])) continue;
    places.push_back(static_cast<std::int64_t>(i));
    positions.push_back(examples[i]);
  }
  const at::ScalarType type = network_.weights().flat.scalar_type();
  const auto own = static_cast<std::int64_t>(places.size());
  const at::Tensor all_places = at::tensor(places, at::kLong);
  const at::Tensor all_positions = at::tensor(positions, at::kLong);
  const std::int64_t step = at_once.value_or(batch_size_);
  for (std::int64_t first = 0; first < own; first += step) {
    const std::int64_t count = std::min(step, own - first);
    at::Tensor inputs = inputs_.at(all_positions.narrow(0, first, count));
    if (inputs.is_floating_point()) inputs = inputs.to(type);
    add({.places = all_places.narrow(0, first, count), .inputs = inputs}, result);
    if (options_.after_batch) {
      options_.after_batch(static_cast<double>(first + count) / static_cast<double>(own));
    }
  }
  add_over_processes(result);
  return result;
}

void ExampleStream::add_over_processes(at::Tensor& sum) const {
  if (options_.sum_over_processes) options_.sum_over_processes(sum);
}

at::Tensor ExampleStream::as_the_first_process_says(at::Tensor value) const {
  at::Tensor said = value.to(at::kDouble).contiguous();
  if (options_.shard.index > 0) said = at::zeros_like(said);
  add_over_processes(said);
  return said;
}

at::Tensor ExampleStream::logits(const Positions& examples) const {
  at::NoGradGuard no_gradient;
  return sum(examples, {count_of(examples), classes()}, [&](const Batch& batch, at::Tensor& rows) {
    const at::Tensor own = network_.model().logits(network_.weights(), batch.inputs);
    const at::Tensor bad = own.isfinite().logical_not().any(1);
    if (bad.any().item<bool>()) {
      const std::int64_t place =
          batch.places[bad.nonzero()[0][0].item<std::int64_t>()].item<std::int64_t>();
      fail("example ", examples[static_cast<std::size_t>(place)],
           ": its input or its logits hold a value that is not finite");
    }
    rows.index_copy_(0, batch.places, own.to(at::kDouble));
  });
}

at::Tensor ExampleStream::jvp(const Positions& examples, const at::Tensor& direction) const {
  if (direction.dim() != 1 || direction.numel() != columns()) {
    fail("jvp: direction of shape ", direction.sizes(), ", must have ", columns(), " values");
  }
  return sum(examples, {count_of(examples), classes()}, [&](const Batch& batch, at::Tensor& rows) {
    const at::Tensor own = tangent_logits(network_.model(), network_.weights(), direction,
                                          batch.inputs, network_.tangent_mode());
    rows.index_copy_(0, batch.places, own.to(at::kDouble));
  });
}

at::Tensor ExampleStream::vjp(const Positions& examples, const at::Tensor& cotangents) const {
  if (cotangents.numel() != count_of(examples) * classes()) {
    fail("vjp: cotangents of shape ", cotangents.sizes(), ", must be ", examples.size(), "×",
         classes());
  }
  const at::Tensor rows = cotangents.reshape({count_of(examples), classes()});
  return sum(examples, {columns()}, [&](const Batch& batch, at::Tensor& pulled) {
    pulled.add_(pulled_back(network_.model(), network_.weights(),
                            rows.index_select(0, batch.places), batch.inputs));
  });
}

at::Tensor ExampleStream::gauss_newton_product(const Positions& examples,
                                               const at::Tensor& direction,
                                               const LogitCurvature& curvature) const {
  if (direction.dim() != 1 || direction.numel() != columns()) {
    fail("product: direction of shape ", direction.sizes(), ", must have ", columns(), " values");
  }
  const LogitMap identity = [](const at::Tensor&, const at::Tensor& x) { return x; };
  const LogitMap& map = curvature.is_identity() ? identity : curvature.product;
  return sum(examples, {columns()}, [&](const Batch& batch, at::Tensor& product) {
    product.add_(pumice::gauss_newton_product(network_.model(), network_.weights(), direction,
                                              batch.inputs, map, network_.tangent_mode()));
  });
}

}  // namespace pumice
