#include "pumice/experiment/weight_plane.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "pumice/experiment/loss_landscape.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;

std::vector<at::Tensor> random_points(std::int64_t count, std::int64_t size) {
  torch::manual_seed(3);
  std::vector<at::Tensor> points;
  for (std::int64_t i = 0; i < count; ++i) points.push_back(torch::randn({size}));
  return points;
}

TEST(PrincipalPlane, AgreesWithTheSingularValuesOfTheCentredPoints) {
  const std::vector<at::Tensor> points = random_points(9, 200);
  const PrincipalPlane principal = principal_plane(points);
  const at::Tensor matrix = at::stack(points).to(at::kDouble);
  const at::Tensor centred = matrix - matrix.mean(0, true);
  const auto [u, s, vt] = at::linalg_svd(centred, false);
  for (std::int64_t k = 0; k < 2; ++k) {
    const at::Tensor squares = s * s;
    EXPECT_NEAR(principal.explained[static_cast<std::size_t>(k)],
                (squares[k] / squares.sum()).item<double>(), 1e-12);
    EXPECT_NEAR(std::abs(principal.plane.axes[k].dot(vt[k]).item<double>()), 1, 1e-10);
  }
  EXPECT_TRUE(principal.plane.origin.allclose(matrix.mean(0), 0, 1e-12));
  EXPECT_TRUE(principal.plane.axes.mm(principal.plane.axes.t())
                  .allclose(at::eye(2, at::kDouble), 0, 1e-12));
}

TEST(PrincipalPlane, ManyColumnsAreTheSameInBlocks) {
  // More columns than one block holds; all the variance lies in two directions that are known.
  const std::int64_t size = (1 << 16) + 1000;
  at::Tensor first = at::zeros({size}, at::kDouble), second = at::zeros({size}, at::kDouble);
  first[3] = 1;
  second[size - 1] = 1;
  std::vector<at::Tensor> points;
  for (const auto& [x, y] : {std::pair{3.0, 1.0}, {-3.0, 1.0}, {3.0, -1.0}, {-3.0, -1.0}}) {
    points.push_back(first * x + second * y);
  }
  const PrincipalPlane principal = principal_plane(points);
  EXPECT_NEAR(principal.explained[0], 0.9, 1e-12);
  EXPECT_NEAR(principal.explained[1], 0.1, 1e-12);
  EXPECT_NEAR(principal.plane.axes[0][3].abs().item<double>(), 1, 1e-12);
  EXPECT_NEAR(principal.plane.axes[1][size - 1].abs().item<double>(), 1, 1e-12);
}

TEST(PrincipalPlane, FewOrCollinearPointsAreRefused) {
  EXPECT_EQ(refusal([] { principal_plane(random_points(2, 5)); }),
            "principal components: 2 points, must be >= 3");
  const at::Tensor one = at::ones({5});
  EXPECT_EQ(refusal([&] {
              principal_plane({one, one * 2, one * 5});
            }),
            "principal components: the points lie on a line, must span a plane");
}

TEST(WeightPlane, ThroughThreePointsHoldsThem) {
  const std::vector<at::Tensor> points = random_points(3, 50);
  const WeightPlane plane = plane_through(points[0], points[1], points[2]);
  EXPECT_TRUE(plane.axes.mm(plane.axes.t()).allclose(at::eye(2, at::kDouble), 0, 1e-12));
  const PlanePoint first = coordinates(plane, points[1]);
  EXPECT_NEAR(first[0], (points[1] - points[0]).norm().item<double>(), 1e-5);
  EXPECT_NEAR(first[1], 0, 1e-6);
  const PlanePoint second = coordinates(plane, points[2]);
  EXPECT_GT(second[1], 0);
  EXPECT_TRUE(point_at(plane, second).allclose(points[2].to(at::kDouble), 0, 1e-6));
  EXPECT_EQ(refusal([&] { plane_through(points[0], points[1], points[1]); }),
            "plane: its three points lie on a line, must span a plane");
}

TEST(WeightPlane, NoiseInItIsThePlanesPartOfTheCovariance) {
  const std::vector<at::Tensor> points = random_points(3, 40);
  const WeightPlane plane = plane_through(points[0], points[1], points[2]);
  const at::Tensor variance = torch::rand({40}).to(at::kDouble);
  const at::Tensor dense = plane.axes.mm(at::diag(variance)).mm(plane.axes.t());
  const PlaneNoise noise = noise_in(plane, variance);
  EXPECT_NEAR(noise.x * noise.x, dense[0][0].item<double>(), 1e-12);
  EXPECT_NEAR(noise.y * noise.y, dense[1][1].item<double>(), 1e-12);
  EXPECT_NEAR(noise.xy, dense[0][1].item<double>(), 1e-12);
}

// Two classes, logits (w·x, 0): the loss of label 0 is log(1 + exp(−w·x)).
class LogisticModel : public Model {
 public:
  explicit LogisticModel(std::int64_t size) { layout_.add("w", {size}); }
  const WeightLayout& layout() const override { return layout_; }
  std::vector<NamedTensor> buffers() const override { return {}; }
  at::Tensor logits(const Weights& weights, const at::Tensor& inputs) const override {
    const at::Tensor first = inputs.flatten(1).mv(weights.flat);
    return at::stack({first, at::zeros_like(first)}, 1);
  }
  void save(const std::filesystem::path&, const Weights&, const Metadata&) const override {}

 private:
  WeightLayout layout_;
};

TEST(LossLandscape, LossesAreThoseOfTheClosedForm) {
  const LogisticModel model(4);
  const auto layout = std::make_shared<WeightLayout>(model.layout());
  const at::Tensor x = torch::tensor({1.0F, -2.0F, 0.5F, 3.0F}).view({1, 1, 2, 2});
  const LossExamples examples{x, torch::zeros({1}, at::kLong)};
  const Weights from{layout, torch::zeros({4})};
  const Weights to{layout, torch::tensor({1.0F, 0.0F, 2.0F, 0.0F})};  // w·x = 2
  const std::vector<double> losses = losses_along(model, from, to, {-0.5, 0, 1, 1.5}, examples);
  for (const auto& [place, position] : {std::pair{0, -0.5}, {1, 0.0}, {2, 1.0}, {3, 1.5}}) {
    EXPECT_NEAR(losses[static_cast<std::size_t>(place)], std::log1p(std::exp(-2 * position)), 1e-6);
  }

  const Weights third{layout, torch::tensor({0.0F, 1.0F, 0.0F, 0.0F})};  // w·x = −2, orthogonal
  const WeightPlane plane = plane_through(from.flat, to.flat, third.flat);
  const double length = std::sqrt(5.0);
  const LossSurface surface =
      loss_surface(model, from, plane, {{0, 0}, {length, 0}, {0, 1}}, examples, 5, 0.5);
  ASSERT_EQ(surface.x.size(), 5U);
  EXPECT_NEAR(surface.x.front(), -0.5 * length, 1e-9);
  EXPECT_NEAR(surface.y.back(), 1.5, 1e-9);
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 5; ++j) {
      const double product = 2 * surface.x[j] / length - 2 * surface.y[i];
      EXPECT_NEAR(surface.loss[i][j], std::log1p(std::exp(-product)), 1e-5) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace pumice
