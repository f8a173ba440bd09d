#include "pumice/experiment/weight_plane.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr std::int64_t block_columns = 1 << 16;

// Columns begin … begin + width of all points, minus their mean: M×width, float64.
at::Tensor centred_block(const std::vector<at::Tensor>& points, std::int64_t begin,
                         std::int64_t width) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& point : points) {
    rows.push_back(point.narrow(0, begin, width).to(at::kDouble));
  }
  const at::Tensor block = at::stack(rows);
  return block - block.mean(0, /*keepdim=*/true);
}

void for_each_block(std::int64_t size,
                    const std::function<void(std::int64_t, std::int64_t)>& work) {
  for (std::int64_t begin = 0; begin < size; begin += block_columns) {
    work(begin, std::min(block_columns, size - begin));
  }
}

}  // namespace

PlanePoint coordinates(const WeightPlane& plane, const at::Tensor& flat) {
  const at::Tensor own = plane.axes.mv(flat.to(at::kDouble) - plane.origin);
  return {own[0].item<double>(), own[1].item<double>()};
}

at::Tensor point_at(const WeightPlane& plane, PlanePoint point) {
  return plane.origin + plane.axes[0] * point[0] + plane.axes[1] * point[1];
}

WeightPlane plane_through(const at::Tensor& origin, const at::Tensor& first,
                          const at::Tensor& second) {
  const at::Tensor base = origin.to(at::kDouble);
  const at::Tensor towards = first.to(at::kDouble) - base;
  const at::Tensor other = second.to(at::kDouble) - base;
  const double length = towards.norm().item<double>();
  const at::Tensor x = towards / (length > 0 ? length : 1);
  // Twice: what rounding leaves of x in the first difference is removed by the second.
  at::Tensor y = other - x * x.dot(other);
  y = y - x * x.dot(y);
  const double height = y.norm().item<double>();
  if (length == 0 || height <= 1e-9 * other.norm().item<double>()) {
    fail("plane: its three points lie on a line, must span a plane");
  }
  return {.origin = base, .axes = at::stack({x, y / height})};
}

PrincipalPlane principal_plane(const std::vector<at::Tensor>& points) {
  if (points.size() < 3) fail("principal components: ", points.size(), " points, must be >= 3");
  const auto count = static_cast<std::int64_t>(points.size());
  const std::int64_t size = points.front().numel();
  at::Tensor gram = at::zeros({count, count}, at::kDouble);
  for_each_block(size, [&](std::int64_t begin, std::int64_t width) {
    const at::Tensor block = centred_block(points, begin, width);
    gram.add_(block.mm(block.t()));
  });
  const auto [values, vectors] = at::linalg_eigh(gram, "L");  // ascending
  const double total = values.sum().item<double>();
  if (!(values[count - 2].item<double>() > 1e-12 * total)) {
    fail("principal components: the points lie on a line, must span a plane");
  }
  PrincipalPlane result;
  result.plane.origin = at::empty({size}, at::kDouble);
  result.plane.axes = at::empty({2, size}, at::kDouble);
  at::Tensor combinations = at::empty({2, count}, at::kDouble);
  for (std::int64_t k = 0; k < 2; ++k) {
    const at::Tensor vector = vectors.select(1, count - 1 - k);
    const double value = values[count - 1 - k].item<double>();
    // Coordinates of the points along this axis are √value·vector.
    const double sign = vector[vector.abs().argmax()].item<double>() < 0 ? -1 : 1;
    combinations[k].copy_(vector * (sign / std::sqrt(value)));
    result.explained[static_cast<std::size_t>(k)] = value / total;
  }
  for_each_block(size, [&](std::int64_t begin, std::int64_t width) {
    result.plane.axes.narrow(1, begin, width)
        .copy_(combinations.mm(centred_block(points, begin, width)));
    at::Tensor mean = at::zeros({width}, at::kDouble);
    for (const at::Tensor& point : points) {
      mean.add_(point.narrow(0, begin, width).to(at::kDouble), 1.0 / static_cast<double>(count));
    }
    result.plane.origin.narrow(0, begin, width).copy_(mean);
  });
  return result;
}

PlaneNoise noise_in(const WeightPlane& plane, const at::Tensor& variance) {
  const at::Tensor wide = variance.to(at::kDouble);
  const auto product = [&](std::int64_t i, std::int64_t j) {
    return (plane.axes[i] * wide).dot(plane.axes[j]).item<double>();
  };
  return {.x = std::sqrt(product(0, 0)), .y = std::sqrt(product(1, 1)), .xy = product(0, 1)};
}

}  // namespace pumice
