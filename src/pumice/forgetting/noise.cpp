#include "pumice/forgetting/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/core/suggestion.h"
#include "pumice/core/system_random.h"

namespace pumice {
namespace {

constexpr double paper_epsilon = 1e-8;
constexpr double paper_cap = 1e3;
constexpr double paper_last_layer_cap = 1e2;
constexpr double paper_factor = 10;

at::Tensor paper_variance(const at::Tensor& fisher, const WeightLayout& layout,
                          std::int64_t classes) {
  std::int64_t last_matrix = 0;
  for (const auto& entry : layout.entries()) {
    if (entry.shape.size() >= 2) last_matrix = entry.offset;
  }
  at::Tensor variance = at::empty_like(fisher);
  for (const auto& entry : layout.entries()) {
    const bool last =
        entry.offset >= last_matrix && !entry.shape.empty() && entry.shape[0] == classes;
    at::Tensor own = (fisher.narrow(0, entry.offset, entry.count) + paper_epsilon)
                         .reciprocal()
                         .clamp_max(last ? paper_last_layer_cap : paper_cap)
                         .view(entry.shape);
    if (entry.shape.size() >= 2) own = own.mean(1, /*keepdim=*/true).expand(entry.shape);
    if (last || entry.shape.size() == 1) own = own * paper_factor;
    variance.narrow(0, entry.offset, entry.count).copy_(own.reshape({-1}));
  }
  return variance;
}

// Uniform in (0, 1]: never zero, since its logarithm is taken.
double to_unit(std::uint64_t bits) {
  return static_cast<double>((bits >> 11) + 1) * 0x1.0p-53;
}

}  // namespace

NoiseShape noise_shape_named(const std::string& name) {
  if (name == "fisher") return NoiseShape::fisher;
  if (name == "paper") return NoiseShape::paper;
  fail("noise shape: '", name, "' is unknown", suggestion(name, {"fisher", "paper"}));
}

std::string noise_shape_name(NoiseShape shape) {
  return shape == NoiseShape::paper ? "paper" : "fisher";
}

void check(const NoiseOptions& options) {
  if (!(options.scale >= 0) || !std::isfinite(options.scale)) {
    fail("noise: ", options.scale, ", must be >= 0");
  }
  if (!(options.epsilon > 0)) fail("noise-epsilon: ", options.epsilon, ", must be > 0");
  if (options.cap && !(*options.cap > 0)) fail("noise-cap: ", *options.cap, ", must be > 0");
}

at::Tensor noise_variance(const at::Tensor& fisher, const WeightLayout& layout,
                          std::int64_t classes, const NoiseOptions& options) {
  check(options);
  const at::Tensor wide = fisher.to(at::kDouble);
  if (options.shape == NoiseShape::paper) {
    return paper_variance(wide, layout, classes) * options.scale;
  }
  at::Tensor variance = (wide + options.epsilon).reciprocal();
  if (options.cap) variance = variance.clamp_max(*options.cap);
  return variance * options.scale;
}

Weights draw(const WeightDistribution& distribution, std::optional<std::uint64_t> seed) {
  const Weights& mean = distribution.mean;
  if (distribution.deterministic()) return {mean.layout, mean.flat.clone()};
  const std::int64_t size = mean.flat.numel();
  const std::int64_t pairs = (size + 1) / 2;
  std::vector<std::uint64_t> bits(static_cast<std::size_t>(2 * pairs));
  if (seed) {
    RandomStream stream(*seed, "noise");
    for (std::uint64_t& value : bits) value = stream.next();
  } else {
    fill_from_system(bits.data(), bits.size() * sizeof(std::uint64_t));
  }
  at::Tensor deviates = at::empty({2 * pairs}, at::kDouble);
  auto* out = deviates.data_ptr<double>();
  for (std::int64_t i = 0; i < pairs; ++i) {
    const auto place = static_cast<std::size_t>(2 * i);
    const double radius = std::sqrt(-2 * std::log(to_unit(bits[place])));
    const double angle = 2 * std::numbers::pi * to_unit(bits[place + 1]);
    out[2 * i] = radius * std::cos(angle);
    out[2 * i + 1] = radius * std::sin(angle);
  }
  const at::Tensor noise = deviates.narrow(0, 0, size) * distribution.variance.sqrt();
  return {mean.layout, (mean.flat.to(at::kDouble) + noise).to(mean.flat.scalar_type())};
}

NoiseSummary summarize(const NoiseOptions& options, const WeightDistribution& distribution) {
  NoiseSummary summary;
  summary.scale = options.scale;
  summary.shape = noise_shape_name(options.shape);
  const bool paper = options.shape == NoiseShape::paper;
  summary.epsilon = paper ? paper_epsilon : options.epsilon;
  summary.cap = paper ? std::optional<double>(paper_cap) : options.cap;
  summary.norm = std::sqrt(distribution.variance.sum().item<double>());
  summary.reproducible = options.seed.has_value();
  return summary;
}

}  // namespace pumice
