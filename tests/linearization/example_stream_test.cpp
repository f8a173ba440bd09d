#include "pumice/linearization/example_stream.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <numeric>

#include "contracts/linear_operator_contract.h"
#include "pumice/linearization/woodbury_preconditioner.h"
#include "refusal.h"
#include "small_models.h"

namespace pumice {
namespace {

using testing::broken_promises;
using testing::dense_jacobian;
using testing::refusal;
using testing::relative_distance;
using testing::small_models;
using testing::SmallModel;

constexpr double exact = 1e-10;  // float64 against float64
const std::vector<std::string> none;

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

// H = diag(π) − ππᵀ and a root of it, both from their definitions.
LogitCurvature softmax_curvature() {
  const auto dense = [](const at::Tensor& logits) {
    const at::Tensor shares = logits.softmax(1);
    return at::diag_embed(shares) - shares.unsqueeze(2) * shares.unsqueeze(1);
  };
  return {.product =
              [dense](const at::Tensor& logits, const at::Tensor& x) {
                return dense(logits).bmm(x.unsqueeze(2)).squeeze(2);
              },
          .root =
              [dense](const at::Tensor& logits) {
                const auto [values, vectors] = at::linalg_eigh(dense(logits.to(at::kDouble)));
                return vectors * values.clamp_min(0).sqrt().unsqueeze(1);
              }};
}

// Rᵀ J with the rows of all examples, from the written-down Jacobian.
at::Tensor curved_rows(const SmallModel& small, const Weights& weights,
                       const LogitCurvature& curvature) {
  const at::Tensor jacobian = dense_jacobian(*small.model, weights, small.inputs);
  if (curvature.is_identity()) return jacobian;
  const at::Tensor root = curvature.root(small.model->logits(weights, small.inputs).detach());
  return root.transpose(1, 2)
      .bmm(jacobian.view({root.size(0), root.size(1), -1}))
      .reshape({-1, jacobian.size(1)});
}

TEST(ExampleStream, OnePassGivesTheProductOfATangentPassAndABackwardPass) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const ExampleStream stream(*small.model, weights, small.inputs);
    const at::Tensor v = torch::randn({stream.columns()}, at::kDouble);
    for (const LogitCurvature& curvature : {LogitCurvature{}, softmax_curvature()}) {
      const at::Tensor fused = stream.gauss_newton_product(first(5), v, curvature);
      at::Tensor change = stream.jvp(first(5), v);
      if (!curvature.is_identity()) change = curvature.product(stream.logits(first(5)), change);
      EXPECT_LT(relative_distance(fused, stream.vjp(first(5), change)), exact) << small.name;
      const at::Tensor rows = curved_rows(small, weights, curvature);
      EXPECT_LT(relative_distance(fused, rows.t().mv(rows.mv(v))), exact) << small.name;
      // Where forward mode does not work, the same comes out of two backward passes.
      const LogitMap map = curvature.is_identity()
                               ? [](const at::Tensor&, const at::Tensor& x) { return x; }
                               : curvature.product;
      EXPECT_LT(relative_distance(gauss_newton_product(*small.model, weights, v, small.inputs, map,
                                                       TangentMode::double_backward),
                                  fused),
                exact)
          << small.name;
    }
  }
}

TEST(ExampleStream, ResultsDoNotDependOnTheSizeOfABatch) {
  const SmallModel small = testing::convolutions();
  ExampleStream stream(*small.model, small.model->random_weights(), small.inputs);
  const std::vector<std::int64_t> part{4, 0, 2};
  const at::Tensor v = torch::randn({stream.columns()}, at::kDouble);
  const at::Tensor u = torch::randn({3, stream.classes()}, at::kDouble);
  const at::Tensor product = stream.gauss_newton_product(part, v, softmax_curvature());
  const at::Tensor logits = stream.logits(part), tangent = stream.jvp(part, v);
  const at::Tensor pulled = stream.vjp(part, u);
  EXPECT_LT(relative_distance(logits[1], small.model->logits(stream.network().weights(),
                                                             small.inputs.narrow(0, 0, 1))[0]),
            exact);
  for (const std::int64_t size : {1, 2}) {
    stream.set_batch_size(size);
    EXPECT_LT(relative_distance(stream.gauss_newton_product(part, v, softmax_curvature()), product),
              exact);
    EXPECT_LT(relative_distance(stream.logits(part), logits), exact);
    EXPECT_LT(relative_distance(stream.jvp(part, v), tangent), exact);
    EXPECT_LT(relative_distance(stream.vjp(part, u), pulled), exact);
  }
}

TEST(ExampleStream, ImagesAreNormalisedWhenTheyAreRead) {
  const at::Tensor images = torch::randint(0, 256, {7, 3, 4, 5}, at::kByte);
  const Normalization normalization{.mean = {0.1, 0.2, 0.3}, .deviation = {0.5, 0.6, 0.7}};
  const InputSource source(images, normalization);
  const at::Tensor all = network_inputs(images, normalization);
  EXPECT_TRUE(at::equal(source.all(), all));
  const at::Tensor some = source.at(at::tensor({5, 0, 6}, at::kLong));
  EXPECT_TRUE(at::equal(some[0], all[5]) && at::equal(some[2], all[6]));
  EXPECT_TRUE(some.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(refusal([&] { InputSource(images, {.mean = {0.1}, .deviation = {1.0}}); }),
            "normalisation: for 1 channels, but the images have 3");
}

TEST(ExampleStream, AnExampleThatIsNotFiniteIsNamed) {
  const SmallModel small = testing::convolutions();
  at::Tensor inputs = small.inputs.clone();
  inputs[4][0][0][0] = std::numeric_limits<double>::quiet_NaN();
  const ExampleStream stream(*small.model, small.model->random_weights(), inputs);
  EXPECT_EQ(refusal([&] { stream.logits(first(5)); }),
            "example 4: its input or its logits hold a value that is not finite");
  EXPECT_EQ(refusal([&] { stream.logits({5}); }), "example 5: must be in 0 … 4");
}

TEST(WoodburyPreconditioner, IsTheInverseOfWhatItsSampleSays) {
  const std::vector<std::int64_t> sample{3, 1};
  const double ridge = 0.7, ratio = 2.5;
  for (const SmallModel& small : {testing::convolutions(), testing::sequence()}) {
    const Weights weights = small.model->random_weights();
    const ExampleStream stream(*small.model, weights, small.inputs);
    for (const LogitCurvature& curvature : {LogitCurvature{}, softmax_curvature()}) {
      const at::Tensor rows = curved_rows(small, weights, curvature).view({5, 3, -1});
      const at::Tensor own = at::cat({rows[3], rows[1]});
      const at::Tensor dense =
          at::linalg_inv(ratio * own.t().mm(own) + ridge * at::eye(stream.columns(), at::kDouble));
      const at::Tensor theta = kernel_of_examples(stream, sample, {});
      const at::Tensor root =
          curvature.is_identity() ? at::Tensor() : curvature.root(stream.logits(sample));
      const WoodburyPreconditioner inverse(
          stream, sample, curvature,
          Cholesky::factorize(woodbury_matrix(theta, root, ridge, ratio)), ridge);
      EXPECT_EQ(broken_promises(inverse, dense, 1e-9), none) << small.name;
    }
  }
}

}  // namespace
}  // namespace pumice
