#include "pumice/experiment/loss_landscape.h"

#include <algorithm>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr std::int64_t batch_size = 256;

}  // namespace

LossExamples loss_examples(const Dataset& dataset, const Normalization& normalization,
                           std::int64_t limit) {
  std::vector<std::int64_t> chosen;
  const std::int64_t count = std::min(limit, dataset.size());
  for (std::int64_t i = 0; i < count; ++i) chosen.push_back(i * dataset.size() / count);
  const Dataset part = subset(dataset, chosen);
  return {network_inputs(part.images, normalization), part.labels};
}

double mean_loss(const Model& model, const Weights& weights, const LossExamples& examples) {
  const at::NoGradGuard no_gradients;
  double sum = 0;
  for (std::int64_t begin = 0; begin < examples.inputs.size(0); begin += batch_size) {
    const std::int64_t width = std::min(batch_size, examples.inputs.size(0) - begin);
    const at::Tensor logits = model.logits(weights, examples.inputs.narrow(0, begin, width));
    const at::Tensor labels = examples.labels.narrow(0, begin, width).unsqueeze(1);
    sum -= logits.to(at::kDouble).log_softmax(1).gather(1, labels).sum().item<double>();
  }
  return sum / static_cast<double>(examples.inputs.size(0));
}

std::vector<double> losses_along(const Model& model, const Weights& from, const Weights& to,
                                 const std::vector<double>& positions,
                                 const LossExamples& examples) {
  const at::Tensor base = from.flat.to(at::kDouble);
  const at::Tensor way = to.flat.to(at::kDouble) - base;
  std::vector<double> losses;
  for (const double position : positions) {
    const Weights weights{from.layout, (base + way * position).to(from.flat.scalar_type())};
    losses.push_back(mean_loss(model, weights, examples));
  }
  return losses;
}

std::vector<double> evenly_spaced(double low, double high, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count - 1);
    values.push_back(low * (1 - share) + high * share);
  }
  return values;
}

LossSurface loss_surface(const Model& model, const Weights& like, const WeightPlane& plane,
                         const std::vector<PlanePoint>& points, const LossExamples& examples,
                         std::int64_t side, double margin,
                         const std::function<void(double share)>& progress) {
  if (side < 2) fail("surface: ", side, " places on a side, must be >= 2");
  if (points.empty()) fail("surface: no points to cover");
  const auto range = [&](std::size_t axis) {
    const auto [low, high] = std::minmax_element(
        points.begin(), points.end(),
        [&](const PlanePoint& a, const PlanePoint& b) { return a[axis] < b[axis]; });
    const double extent = (*high)[axis] - (*low)[axis];
    return evenly_spaced((*low)[axis] - margin * extent, (*high)[axis] + margin * extent, side);
  };
  LossSurface surface{.x = range(0), .y = range(1), .loss = {}};
  for (const double y : surface.y) {
    std::vector<double> row;
    for (const double x : surface.x) {
      const Weights weights{like.layout, point_at(plane, {x, y}).to(like.flat.scalar_type())};
      row.push_back(mean_loss(model, weights, examples));
    }
    surface.loss.push_back(row);
    if (progress) {
      progress(static_cast<double>(surface.loss.size()) / static_cast<double>(side));
    }
  }
  return surface;
}

}  // namespace pumice
