#include "pumice/forgetting/noise.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "forgetting_tasks.h"
#include "pumice/linearization/linearization.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::refusal;

std::shared_ptr<const WeightLayout> small_layout() {
  auto layout = std::make_shared<WeightLayout>();
  layout->add("conv.weight", {2, 3, 1, 1});
  layout->add("norm.weight", {2});
  layout->add("head.weight", {4, 2});
  layout->add("head.bias", {4});
  return layout;
}

TEST(Noise, TheFisherShapeIsAlphaOverFisherPlusEpsilonWithItsCap) {
  const auto layout = small_layout();
  const at::Tensor fisher = at::linspace(0, 2, layout->total(), at::kDouble);
  NoiseOptions options{.scale = 0.5, .epsilon = 0.01};
  const at::Tensor variance = noise_variance(fisher, *layout, 4, options);
  EXPECT_TRUE(at::allclose(variance, 0.5 / (fisher + 0.01), 1e-14));
  options.cap = 3;
  EXPECT_DOUBLE_EQ(noise_variance(fisher, *layout, 4, options).max().item<double>(), 1.5);
}

// The published rule, written down a second time, entry by entry.
TEST(Noise, ThePaperShapeAveragesOverTheSecondAxisAndStressesTheLastLayer) {
  const auto layout = small_layout();
  torch::manual_seed(2);
  const at::Tensor fisher = torch::rand({layout->total()}, at::kDouble) * 0.02;
  const at::Tensor variance =
      noise_variance(fisher, *layout, 4, {.scale = 2, .shape = NoiseShape::paper});
  const auto one = [&](std::int64_t place, double cap) {
    return std::min(cap, 1 / (fisher[place].item<double>() + 1e-8));
  };
  for (std::int64_t out = 0; out < 2; ++out) {
    const double mean = (one(3 * out, 1e3) + one(3 * out + 1, 1e3) + one(3 * out + 2, 1e3)) / 3;
    EXPECT_NEAR(variance[3 * out + 1].item<double>(), 2 * mean, 1e-9);
  }
  EXPECT_NEAR(variance[7].item<double>(), 2 * 10 * one(7, 1e3), 1e-9);  // norm.weight
  EXPECT_NEAR(variance[11].item<double>(), 2 * 10 * (one(10, 1e2) + one(11, 1e2)) / 2, 1e-9);
  EXPECT_NEAR(variance[17].item<double>(), 2 * 10 * one(17, 1e2), 1e-9);  // head.bias
}

TEST(Noise, DrawsHaveTheStatedMeanVarianceAndNoCorrelation) {
  auto layout = std::make_shared<WeightLayout>();
  layout->add("w", {200'000});
  const at::Tensor mean = at::full({200'000}, 3, at::kDouble);
  at::Tensor variance = at::full({200'000}, 4, at::kDouble);
  variance.narrow(0, 100'000, 100'000).fill_(0.25);
  for (const std::optional<std::uint64_t> seed : {std::optional<std::uint64_t>(5), {}}) {
    const Weights drawn = draw({{layout, mean}, variance}, seed);
    const at::Tensor noise = (drawn.flat - mean) / variance.sqrt();
    // Six standard errors of 200,000 draws.
    EXPECT_NEAR(noise.mean().item<double>(), 0, 6 / std::sqrt(2e5));
    EXPECT_NEAR(noise.square().mean().item<double>(), 1, 6 * std::sqrt(2 / 2e5));
    EXPECT_NEAR(noise.pow(4).mean().item<double>(), 3, 6 * std::sqrt(96 / 2e5));
    const at::Tensor early = noise.narrow(0, 0, 199'999), late = noise.narrow(0, 1, 199'999);
    EXPECT_NEAR((early * late).mean().item<double>(), 0, 6 / std::sqrt(2e5));
  }
}

TEST(Noise, OnlyASeedMakesItRepeatable) {
  const auto layout = small_layout();
  const WeightDistribution distribution{{layout, at::zeros({layout->total()}, at::kDouble)},
                                        at::ones({layout->total()}, at::kDouble)};
  EXPECT_TRUE(at::equal(draw(distribution, 7).flat, draw(distribution, 7).flat));
  EXPECT_FALSE(at::equal(draw(distribution, 7).flat, draw(distribution, 8).flat));
  EXPECT_FALSE(at::equal(draw(distribution, {}).flat, draw(distribution, {}).flat));
  EXPECT_FALSE(summarize({.scale = 1}, distribution).reproducible);
  EXPECT_TRUE(summarize({.scale = 1, .seed = 7}, distribution).reproducible);
}

TEST(Noise, WithoutVarianceTheWeightsComeBackAsTheyAre) {
  const auto layout = small_layout();
  const WeightDistribution distribution{{layout, at::randn({layout->total()})}, {}};
  EXPECT_TRUE(distribution.deterministic());
  const Weights drawn = draw(distribution, {});
  EXPECT_TRUE(at::equal(drawn.flat, distribution.mean.flat));
  EXPECT_FALSE(drawn.flat.is_same(distribution.mean.flat));
}

TEST(Noise, ADistributionSurvivesItsFile) {
  const testing::TemporaryFolder folder;
  const auto layout = small_layout();
  const at::Tensor variance = at::rand({layout->total()}, at::kDouble);
  const WeightDistribution written{{layout, at::randn({layout->total()})}, variance};
  write_distribution(folder / "d.safetensors", written);
  const WeightDistribution read = read_distribution(folder / "d.safetensors", layout);
  EXPECT_TRUE(at::equal(read.mean.flat, written.mean.flat));
  EXPECT_TRUE(at::equal(read.variance, variance));
  auto other = std::make_shared<WeightLayout>();
  other->add("conv.weight", {2, 2, 1, 1});
  EXPECT_NE(refusal([&] {
              read_distribution(folder / "d.safetensors", other);
            }).find("'conv.weight' has shape"),
            std::string::npos);
}

TEST(Noise, WrongOptionsAreNamedWithValueAndRule) {
  EXPECT_EQ(refusal([] { check(NoiseOptions{.scale = -1}); }), "noise: -1, must be >= 0");
  EXPECT_EQ(refusal([] { check(NoiseOptions{.epsilon = 0}); }), "noise-epsilon: 0, must be > 0");
  EXPECT_NE(refusal([] { noise_shape_named("papr"); }).find("did you mean 'paper'?"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
