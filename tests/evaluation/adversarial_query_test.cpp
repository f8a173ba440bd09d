#include "pumice/evaluation/adversarial_query.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "evaluation/small_audits.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::audit_of;
using testing::refusal;
using testing::SmallAudit;

SmallAudit curved_audit() {
  return audit_of(testing::curved_classifier(), testing::some_images({4, 1, 8, 8}), 0.2);
}

// Q at one image, and its gradient unless it is infinite.
struct ValueAndGradient {
  double nats;
  at::Tensor gradient;
};
ValueAndGradient query_value(const Model& model, const Weights& scrubbed,
                             const WeightDistribution& reference, const at::Tensor& image,
                             double floor) {
  const QueryObjective objective(Linearization(model, reference.mean, image.unsqueeze(0)), scrubbed,
                                 reference, floor);
  const QueryValue value = objective.values(image.unsqueeze(0)).front();
  return {value.nats, value.reason.empty() ? objective.gradient(image, value) : at::Tensor()};
}

AdversarialQuery find_adversarial_query(const Model& model, const Weights& scrubbed,
                                        const WeightDistribution& reference,
                                        const at::Tensor& start, const ImageBox& box,
                                        const AdversarialQueryOptions& options = {}) {
  return find_adversarial_queries(Linearization(model, reference.mean, start.unsqueeze(0)),
                                  scrubbed, reference, start.unsqueeze(0), box, options)
      .front();
}

ImageBox unit_box() {
  return {at::full({1, 1, 1}, -1.5, at::kDouble), at::full({1, 1, 1}, 1.5, at::kDouble)};
}

TEST(AdversarialQuery, TheValueIsTheQuadraticTermFromTheWrittenDownJacobian) {
  const SmallAudit audit = curved_audit();
  for (const double floor : {0.0, 0.3}) {
    for (std::int64_t i = 0; i < 4; ++i) {
      const at::Tensor batch = audit.inputs.narrow(0, i, 1);
      const at::Tensor jacobian =
          testing::dense_jacobian(*audit.model, audit.reference.mean, batch);
      const at::Tensor covariance = (jacobian * audit.reference.variance).mm(jacobian.t()) +
                                    floor * floor * at::eye(3, at::kDouble);
      const at::Tensor difference = (audit.model->logits(audit.scrubbed.mean, batch) -
                                     audit.model->logits(audit.reference.mean, batch))[0];
      const double expected =
          0.5 * difference.dot(at::linalg_inv(covariance).mv(difference)).item<double>();
      const ValueAndGradient value =
          query_value(*audit.model, audit.scrubbed.mean, audit.reference, audit.inputs[i], floor);
      EXPECT_NEAR(value.nats / expected, 1, 1e-10);
    }
  }
}

void expect_gradient_of_differences(const SmallAudit& audit, double floor) {
  const at::Tensor image = audit.inputs[0];
  const auto value_at = [&](const at::Tensor& x) {
    return query_value(*audit.model, audit.scrubbed.mean, audit.reference, x, floor).nats;
  };
  const at::Tensor gradient =
      query_value(*audit.model, audit.scrubbed.mean, audit.reference, image, floor).gradient;
  ASSERT_EQ(gradient.sizes(), image.sizes());
  const double size = gradient.abs().max().item<double>();
  ASSERT_GT(size, 0);
  const double h = 1e-4;
  for (std::int64_t pixel = 0; pixel < image.numel(); pixel += 5) {
    at::Tensor unit = at::zeros_like(image);
    unit.view(-1)[pixel] = 1;
    // Fourth order: the error is about h⁴, not h².
    const double slope = (8 * (value_at(image + h * unit) - value_at(image - h * unit)) -
                          (value_at(image + 2 * h * unit) - value_at(image - 2 * h * unit))) /
                         (12 * h);
    EXPECT_NEAR(gradient.reshape({-1})[pixel].item<double>(), slope, 1e-8 * size)
        << "pixel " << pixel << ", floor " << floor;
  }
}

TEST(AdversarialQuery, TheGradientAgreesWithFiniteDifferences) {
  SmallAudit audit = curved_audit();
  expect_gradient_of_differences(audit, 0);
  expect_gradient_of_differences(audit, 0.3);
  audit.reference.variance = at::Tensor();
  expect_gradient_of_differences(audit, 0.3);
  const testing::SmallModel convolutions = testing::convolutions();
  expect_gradient_of_differences(audit_of(convolutions.model, convolutions.inputs, 0.2), 0.1);
}

TEST(AdversarialQuery, TheResultIsNeverBelowItsStartAndStaysInTheBox) {
  const SmallAudit audit = curved_audit();
  const ImageBox box = unit_box();
  const std::string before = digest(audit.scrubbed.mean);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (const std::int64_t iterations : {0, 1, 10}) {
      const AdversarialQuery query =
          find_adversarial_query(*audit.model, audit.scrubbed.mean, audit.reference,
                                 audit.inputs[i], box, {.max_iterations = iterations});
      EXPECT_LE(query.image.max().item<double>(), 1.5);
      EXPECT_GE(query.image.min().item<double>(), -1.5);
      EXPECT_LE(query.iterations, iterations);
      const auto value_at = [&](const at::Tensor& image) {
        return query_value(*audit.model, audit.scrubbed.mean, audit.reference, image, 0).nats;
      };
      EXPECT_NEAR(query.start_nats, value_at(audit.inputs[i].clamp(-1.5, 1.5)), 1e-12);
      EXPECT_NEAR(query.nats, value_at(query.image), 1e-12 * query.nats);
      EXPECT_GE(query.nats, query.start_nats);
      if (iterations == 10) {
        EXPECT_GT(query.nats, 1.5 * query.start_nats);
        EXPECT_GT(query.largest_change, 0.05);
        EXPECT_LE(query.largest_change, 1);
      }
    }
  }
  EXPECT_EQ(digest(audit.scrubbed.mean), before);
}

TEST(AdversarialQuery, MoreIterationsNeverLowerTheValueHoweverLongTheFirstStep) {
  const SmallAudit audit = curved_audit();
  for (std::int64_t i = 0; i < 4; ++i) {
    double last = 0;
    for (std::int64_t iterations = 0; iterations <= 8; ++iterations) {
      const AdversarialQuery query = find_adversarial_query(
          *audit.model, audit.scrubbed.mean, audit.reference, audit.inputs[i], unit_box(),
          {.max_iterations = iterations, .first_step = 1});
      EXPECT_GE(query.nats, last) << "image " << i << ", " << iterations << " iterations";
      last = query.nats;
    }
  }
}

TEST(AdversarialQuery, StartsSearchedSideBySideFindWhatEachFindsAlone) {
  const SmallAudit audit = curved_audit();
  const AdversarialQueryOptions options{.max_iterations = 6};
  const std::vector<AdversarialQuery> together = find_adversarial_queries(
      Linearization(*audit.model, audit.reference.mean, audit.inputs), audit.scrubbed.mean,
      audit.reference, audit.inputs, unit_box(), options);
  ASSERT_EQ(together.size(), 4u);
  for (std::size_t i = 0; i < together.size(); ++i) {
    const AdversarialQuery alone =
        find_adversarial_query(*audit.model, audit.scrubbed.mean, audit.reference,
                               audit.inputs[static_cast<std::int64_t>(i)], unit_box(), options);
    EXPECT_NEAR(together[i].nats / alone.nats, 1, 1e-9);
    EXPECT_EQ(together[i].iterations, alone.iterations);
    EXPECT_EQ(together[i].evaluations, alone.evaluations);
    EXPECT_LT((together[i].image - alone.image).abs().max().item<double>(), 1e-9);
  }
}

TEST(AdversarialQuery, SinglePrecisionFindsWhatDoublePrecisionFinds) {
  const SmallAudit audit = curved_audit();
  const Weights scrubbed{audit.scrubbed.mean.layout, audit.scrubbed.mean.flat.to(at::kFloat)};
  const WeightDistribution reference{
      {audit.reference.mean.layout, audit.reference.mean.flat.to(at::kFloat)},
      audit.reference.variance};
  const AdversarialQueryOptions options{.max_iterations = 3};
  const AdversarialQuery wide = find_adversarial_query(
      *audit.model, audit.scrubbed.mean, audit.reference, audit.inputs[0], unit_box(), options);
  const AdversarialQuery narrow = find_adversarial_query(
      *audit.model, scrubbed, reference, audit.inputs[0].to(at::kFloat), unit_box(), options);
  EXPECT_EQ(narrow.image.scalar_type(), at::kFloat);
  EXPECT_NEAR(narrow.start_nats / wide.start_nats, 1, 1e-4);
  EXPECT_NEAR(narrow.nats / wide.nats, 1, 1e-3);
}

TEST(AdversarialQuery, ForALinearModelNoSinglePixelImprovesTheResult) {
  // With a floor this high most of the noise is not the image's, and larger images tell more.
  const SmallAudit audit =
      audit_of(testing::linear_classifier(), testing::some_images({1, 1, 4, 4}), 0.3);
  const ImageBox box = unit_box();
  const AdversarialQuery query =
      find_adversarial_query(*audit.model, audit.scrubbed.mean, audit.reference, audit.inputs[0],
                             box, {.floor = 1, .max_iterations = 200});
  for (std::int64_t pixel = 0; pixel < 16; ++pixel) {
    for (const double change : {-0.01, 0.01}) {
      at::Tensor moved = query.image.clone();
      moved.view(-1)[pixel] += change;
      const double nats =
          query_value(*audit.model, audit.scrubbed.mean, audit.reference, moved.clamp(-1.5, 1.5), 1)
              .nats;
      EXPECT_LT(nats, query.nats * (1 + 1e-3)) << "pixel " << pixel;
    }
  }
}

TEST(AdversarialQuery, WithoutNoiseAndFloorItIsInfiniteWithAReasonAndNothingIsSearched) {
  SmallAudit audit = curved_audit();
  audit.reference.variance = at::Tensor();
  const AdversarialQuery query = find_adversarial_query(
      *audit.model, audit.scrubbed.mean, audit.reference, audit.inputs[0], unit_box());
  EXPECT_TRUE(std::isinf(query.nats));
  EXPECT_EQ(query.reason, "the weights of the reference have no noise, and there is no floor");
  EXPECT_EQ(query.evaluations, 1);
  const AdversarialQuery floored =
      find_adversarial_query(*audit.model, audit.scrubbed.mean, audit.reference, audit.inputs[0],
                             unit_box(), {.floor = 0.1, .max_iterations = 2});
  EXPECT_TRUE(std::isfinite(floored.nats));
}

TEST(AdversarialQuery, TheBoxOfPixelsIsTheirRangeAfterNormalisation) {
  const Normalization normalization{.mean = {0.5, 0.25}, .deviation = {0.5, 0.125}};
  const ImageBox box = pixel_box(normalization);
  at::Tensor images = at::zeros({2, 2, 3, 3}, at::kByte);
  images[1].fill_(255);
  const at::Tensor inputs = network_inputs(images, normalization).to(at::kDouble);
  EXPECT_LT((inputs[0] - box.low).abs().max().item<double>(), 1e-6);
  EXPECT_LT((inputs[1] - box.high).abs().max().item<double>(), 1e-6);
  EXPECT_NE(refusal([] { pixel_box({}); }).find("no known bounds"), std::string::npos);
}

TEST(AdversarialQuery, WhatDoesNotFitIsRefused) {
  const SmallAudit audit = curved_audit();
  const Weights foreign = testing::linear_classifier()->random_weights();
  EXPECT_NE(refusal([&] {
              query_value(*audit.model, foreign, audit.reference, audit.inputs[0], 0);
            }).find("same architecture"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              query_value(*audit.model, audit.scrubbed.mean, audit.reference, audit.inputs[0], -1);
            }).find("must be >= 0"),
            std::string::npos);
  const ImageBox upside_down{unit_box().high, unit_box().low};
  EXPECT_NE(refusal([&] {
              find_adversarial_query(*audit.model, audit.scrubbed.mean, audit.reference,
                                     audit.inputs[0], upside_down);
            }).find("image box"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
