#include "pumice/linearization/kernel_tiles.h"

#include <algorithm>
#include <cmath>

namespace pumice {
namespace {

at::Tensor inputs_of(const ExampleStream& stream, std::int64_t begin, std::int64_t end) {
  const at::Tensor inputs = stream.inputs().at(at::arange(begin, end, at::kLong));
  return inputs.is_floating_point() ? inputs.to(stream.network().weights().flat.scalar_type())
                                    : inputs;
}

// What two computations cost together; what the second says of its plan stands for both.
KernelSummary both(KernelSummary first, const KernelSummary& second) {
  first.layers.insert(first.layers.end(), second.layers.begin(), second.layers.end());
  first.signal_flops += second.signal_flops;
  first.signal_seconds += second.signal_seconds;
  first.forecast += second.forecast;
  first.seconds += second.seconds;
  first.passes += second.passes;
  first.blocks = std::max(first.blocks, second.blocks);
  first.planned_bytes = std::max(first.planned_bytes, second.planned_bytes);
  return first;
}

}  // namespace

std::vector<std::int64_t> triangle_cuts(std::int64_t examples, std::int64_t parts) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t k = 0; k <= parts; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(parts);
    cuts.push_back(std::llround(static_cast<double>(examples) * std::sqrt(share)));
  }
  return cuts;
}

Kernel kernel_rows(const ExampleStream& stream, std::int64_t begin, std::int64_t end,
                   const KernelOptions& options) {
  const std::int64_t classes = stream.classes(), rows = (end - begin) * classes;
  Kernel result{.theta = at::zeros({rows, end * classes}, at::kDouble), .summary = {}};
  if (begin == end) return result;
  const Linearization own = stream.network().with_inputs(inputs_of(stream, begin, end));
  const auto count = [](std::int64_t left, std::int64_t right) {
    return static_cast<double>(left) * static_cast<double>(right);
  };
  // Of a symmetric block only half is computed.
  const double beside = count(end - begin, begin), block = count(end - begin, end - begin) / 2;
  const double share = beside / (beside + block);
  KernelOptions part = options;
  part.part_of = stream.examples();
  if (begin > 0) {
    if (options.progress) part.progress = [&](double done) { options.progress(share * done); };
    const Linearization before = stream.network().with_inputs(inputs_of(stream, 0, begin));
    Kernel left = own.kernel(before, part);
    result.theta.narrow(1, 0, begin * classes).copy_(left.theta);
    result.summary = left.summary;
  }
  if (options.progress) {
    part.progress = [&](double done) { options.progress(share + (1 - share) * done); };
  }
  const Kernel diagonal = own.kernel(part);
  result.theta.narrow(1, begin * classes, rows).copy_(diagonal.theta);
  result.summary = begin > 0 ? both(result.summary, diagonal.summary) : diagonal.summary;
  return result;
}

Kernel tiled_kernel(const ExampleStream& stream, const Shard& shard, const GatherTiles& gather,
                    const KernelOptions& options) {
  const std::vector<std::int64_t> cuts = triangle_cuts(stream.examples(), shard.count);
  const auto index = static_cast<std::size_t>(shard.index);
  Kernel own = kernel_rows(stream, cuts[index], cuts[index + 1], options);
  if (shard.index > 0) {
    gather(own.theta, {});
    return {.theta = {}, .summary = own.summary};
  }
  const std::int64_t classes = stream.classes(), size = stream.examples() * classes;
  Kernel whole{.theta = at::zeros({size, size}, at::kDouble), .summary = own.summary};
  std::vector<at::Tensor> places;
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) {
    const std::int64_t rows = cuts[part + 1] - cuts[part];
    places.push_back(whole.theta.narrow(0, cuts[part] * classes, rows * classes)
                         .narrow(1, 0, cuts[part + 1] * classes));
  }
  gather(own.theta, places);
  mirror_lower_triangle(whole.theta);
  whole.summary.rows = whole.summary.columns = size;
  return whole;
}

}  // namespace pumice
