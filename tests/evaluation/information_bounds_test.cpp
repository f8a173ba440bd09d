#include "pumice/evaluation/information_bounds.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "evaluation/small_audits.h"
#include "refusal.h"

namespace pumice {
namespace {

using testing::audit_of;
using testing::dense_jacobian;
using testing::refusal;
using testing::small_models;
using testing::SmallAudit;
using testing::SmallModel;
using testing::textbook_divergence;

constexpr double exact = 1e-8;  // float64, after two factorizations

SmallAudit linear_audit(std::int64_t queries) {
  return audit_of(testing::linear_classifier(), testing::some_images({queries, 1, 4, 4}));
}

// The answers of all queries and their covariance, from the written-down Jacobian.
struct DenseAnswers {
  at::Tensor mean, covariance;
};

DenseAnswers dense_answers(const Model& model, const WeightDistribution& weights,
                           const at::Tensor& inputs, Answers answers) {
  const at::Tensor jacobian = dense_jacobian(model, weights.mean, inputs);
  const at::Tensor logits = model.logits(weights.mean, inputs).detach();
  if (answers == Answers::logits) {
    return {logits.flatten(), (jacobian * weights.variance).mm(jacobian.t())};
  }
  // Any orthonormal basis will do: here from a QR factorization of (1, …, 1).
  const std::int64_t classes = logits.size(1);
  const at::Tensor basis =
      std::get<0>(at::linalg_qr(at::ones({classes, 1}, at::kDouble), "complete"))
          .narrow(1, 1, classes - 1);
  std::vector<at::Tensor> means, rows;
  for (std::int64_t i = 0; i < logits.size(0); ++i) {
    const at::Tensor shares = logits[i].softmax(0);
    const at::Tensor slope = at::diag(shares) - at::outer(shares, shares);
    means.push_back(basis.t().mv(shares));
    rows.push_back(basis.t().mm(slope).mm(jacobian.narrow(0, i * classes, classes)));
  }
  const at::Tensor chained = at::cat(rows);
  return {at::cat(means), (chained * weights.variance).mm(chained.t())};
}

double dense_bound(const SmallAudit& audit, const at::Tensor& inputs, Answers answers,
                   double floor) {
  const DenseAnswers own = dense_answers(*audit.model, audit.scrubbed, inputs, answers);
  const DenseAnswers other = dense_answers(*audit.model, audit.reference, inputs, answers);
  const at::Tensor added = floor * floor * at::eye(own.mean.numel(), at::kDouble);
  return textbook_divergence(own.mean - other.mean, own.covariance + added,
                             other.covariance + added);
}

TEST(InformationBounds, TheWhiteBoxBoundIsTheDivergenceOfTheWeights) {
  const SmallAudit audit = linear_audit(2);
  const GaussianDivergence bound = white_box_bound(audit.scrubbed, audit.reference);
  const double expected =
      textbook_divergence(audit.scrubbed.mean.flat - audit.reference.mean.flat,
                          at::diag(audit.scrubbed.variance), at::diag(audit.reference.variance));
  EXPECT_NEAR(bound.nats() / expected, 1, exact);
  EXPECT_EQ(bound.dimension, 51);
  EXPECT_EQ(white_box_bound(audit.reference, audit.reference).nats(), 0);
}

TEST(InformationBounds, WithoutNoiseTheBoundIsInfiniteAndSaysWhose) {
  SmallAudit audit = linear_audit(2);
  audit.reference.variance = at::Tensor();
  const GaussianDivergence bound = white_box_bound(audit.scrubbed, audit.reference);
  EXPECT_TRUE(std::isinf(bound.nats()));
  EXPECT_EQ(bound.reason, "the weights of the reference have no noise");
  const nlohmann::json json = to_json(bound_readout("white-box bound", "KL", bound));
  EXPECT_EQ(json.at("value"), "infinite");
  EXPECT_EQ(json.at("reason"), bound.reason);

  const SeparateAnswers own = separate_answers(*audit.model, audit.scrubbed, audit.inputs);
  const SeparateAnswers other = separate_answers(*audit.model, audit.reference, audit.inputs);
  const auto bounds = query_bounds(own, other);
  EXPECT_FALSE(bounds.front().finite());
  const Readout mean = mean_bound_readout("black-box bound", "mean KL", bounds);
  EXPECT_TRUE(std::isinf(mean.value));
  EXPECT_NE(mean.reason.find("2 of 2 values are not finite; the first: the covariance of the "
                             "reference is singular"),
            std::string::npos)
      << mean.reason;
  // An interface that rounds its answers has noise of its own.
  EXPECT_TRUE(query_bounds(own, other, {.floor = 0.1}).front().finite());
}

TEST(InformationBounds, EachQuerysBoundEqualsTheDenseComputation) {
  for (const SmallModel& small : small_models()) {
    const SmallAudit audit = audit_of(small.model, small.inputs);
    for (const Answers answers : {Answers::logits, Answers::softmax}) {
      const SeparateAnswers own =
          separate_answers(*audit.model, audit.scrubbed, audit.inputs, {.answers = answers});
      const SeparateAnswers other =
          separate_answers(*audit.model, audit.reference, audit.inputs, {.answers = answers});
      for (const double floor : {0.0, 0.05}) {
        const auto bounds = query_bounds(own, other, {.floor = floor});
        ASSERT_EQ(bounds.size(), 5u);
        for (std::int64_t i = 0; i < 5; ++i) {
          const double expected = dense_bound(audit, audit.inputs.narrow(0, i, 1), answers, floor);
          EXPECT_NEAR(bounds[static_cast<std::size_t>(i)].nats() / expected, 1, exact)
              << small.name << ", query " << i << ", floor " << floor;
        }
      }
    }
  }
}

TEST(InformationBounds, JointBoundsForEveryNumberOfQueriesEqualTheDenseOnesAndNeverDecrease) {
  for (const SmallModel& small : small_models()) {
    const SmallAudit audit = audit_of(small.model, small.inputs);
    for (const Answers answers : {Answers::logits, Answers::softmax}) {
      const JointAnswers own =
          joint_answers(*audit.model, audit.scrubbed, audit.inputs, {.answers = answers});
      const JointAnswers other =
          joint_answers(*audit.model, audit.reference, audit.inputs, {.answers = answers});
      const auto bounds = bounds_by_query_count(own, other);
      ASSERT_EQ(bounds.size(), 5u);
      double last = 0;
      for (std::int64_t q = 1; q <= 5; ++q) {
        const GaussianDivergence& bound = bounds[static_cast<std::size_t>(q - 1)];
        const double expected = dense_bound(audit, audit.inputs.narrow(0, 0, q), answers, 0);
        EXPECT_NEAR(bound.nats() / expected, 1, 1e-6) << small.name << ", " << q << " queries";
        EXPECT_GE(bound.nats(), last) << small.name;
        last = bound.nats();
      }
      EXPECT_EQ(joint_bound(own, other).nats(), last);
      const auto single = query_bounds(
          separate_answers(*audit.model, audit.scrubbed, audit.inputs, {.answers = answers}),
          separate_answers(*audit.model, audit.reference, audit.inputs, {.answers = answers}));
      EXPECT_NEAR(bounds.front().nats() / single.front().nats(), 1, exact) << small.name;
    }
  }
}

TEST(InformationBounds, ForAModelLinearInItsWeightsAnswersTellAtMostWhatWeightsTell) {
  const SmallAudit audit = linear_audit(17);
  const double white = white_box_bound(audit.scrubbed, audit.reference).nats();
  for (const GaussianDivergence& bound :
       query_bounds(separate_answers(*audit.model, audit.scrubbed, audit.inputs),
                    separate_answers(*audit.model, audit.reference, audit.inputs))) {
    EXPECT_LT(bound.nats(), white);
    EXPECT_GT(bound.nats(), 0);
  }
  // 17 queries of 3 answers determine the 51 weights: then the answers tell all.
  const auto bounds =
      bounds_by_query_count(joint_answers(*audit.model, audit.scrubbed, audit.inputs),
                            joint_answers(*audit.model, audit.reference, audit.inputs));
  EXPECT_LT(bounds[15].nats(), white);
  EXPECT_NEAR(bounds[16].nats() / white, 1, 1e-6);
}

TEST(InformationBounds, MoreAnswersThanWeightsNeedAFloor) {
  const SmallAudit audit = linear_audit(20);
  const JointAnswers own = joint_answers(*audit.model, audit.scrubbed, audit.inputs);
  const JointAnswers other = joint_answers(*audit.model, audit.reference, audit.inputs);
  const auto bounds = bounds_by_query_count(own, other);
  EXPECT_TRUE(bounds[16].finite());
  EXPECT_FALSE(bounds[17].finite());
  EXPECT_NE(bounds[17].reason.find("pivot 52 of 60"), std::string::npos) << bounds[17].reason;
  const GaussianDivergence rounded = joint_bound(own, other, {.floor = 0.01});
  EXPECT_TRUE(rounded.finite());
  EXPECT_LT(rounded.nats(), white_box_bound(audit.scrubbed, audit.reference).nats());
}

TEST(InformationBounds, AFloorLowersTheBound) {
  const SmallModel small = testing::convolutions();
  const SmallAudit audit = audit_of(small.model, small.inputs);
  const SeparateAnswers own = separate_answers(*audit.model, audit.scrubbed, audit.inputs);
  const SeparateAnswers other = separate_answers(*audit.model, audit.reference, audit.inputs);
  double last = query_bounds(own, other).front().nats();
  for (const double floor : {0.01, 0.1, 1.0, 10.0}) {
    const double bound = query_bounds(own, other, {.floor = floor}).front().nats();
    EXPECT_LT(bound, last);
    last = bound;
  }
  EXPECT_NE(refusal([&] { query_bounds(own, other, {.floor = -1}); }).find("must be >= 0"),
            std::string::npos);
}

TEST(InformationBounds, SinglePrecisionGivesTheSameBoundsToFourDigits) {
  const SmallModel small = testing::convolutions();
  const SmallAudit audit = audit_of(small.model, small.inputs);
  const auto narrow = [](const WeightDistribution& wide) {
    return WeightDistribution{{wide.mean.layout, wide.mean.flat.to(at::kFloat)}, wide.variance};
  };
  const at::Tensor inputs = audit.inputs.to(at::kFloat);
  for (const Answers answers : {Answers::logits, Answers::softmax}) {
    const AnswerOptions options{.answers = answers};
    const auto wide =
        query_bounds(separate_answers(*audit.model, audit.scrubbed, audit.inputs, options),
                     separate_answers(*audit.model, audit.reference, audit.inputs, options));
    const auto single =
        query_bounds(separate_answers(*audit.model, narrow(audit.scrubbed), inputs, options),
                     separate_answers(*audit.model, narrow(audit.reference), inputs, options));
    for (std::size_t i = 0; i < wide.size(); ++i) {
      EXPECT_NEAR(single[i].nats() / wide[i].nats(), 1, 1e-4);
    }
  }
}

TEST(InformationBounds, QueriesInAnotherOrderHaveTheSameBounds) {
  const SmallModel small = testing::convolutions();
  const SmallAudit audit = audit_of(small.model, small.inputs);
  const auto bounds = [&](const at::Tensor& inputs) {
    return query_bounds(separate_answers(*audit.model, audit.scrubbed, inputs),
                        separate_answers(*audit.model, audit.reference, inputs));
  };
  const auto forward = bounds(audit.inputs);
  const auto backward = bounds(audit.inputs.flip({0}));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(forward[i].nats() / backward[4 - i].nats(), 1, exact);
  }
}

TEST(InformationBounds, TheShiftSplitsIntoWhatChangesAnswersAndWhatDoesNot) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    // The first query twice: the rank must not count it again.
    const at::Tensor inputs = at::cat({small.inputs, small.inputs.narrow(0, 0, 1)});
    const Linearization linearization(*small.model, weights, inputs);
    const at::Tensor shift = torch::randn({weights.flat.numel()}, at::kDouble);
    const ShiftSplit split = split_shift(linearization, shift);
    const at::Tensor jacobian = dense_jacobian(*small.model, weights, inputs);
    const at::Tensor singular = at::linalg_svdvals(jacobian);
    const at::Tensor visible =
        at::linalg_pinv(jacobian, 1e-7 * singular[0].item<double>(), 0.0).mv(jacobian.mv(shift));
    EXPECT_EQ(split.rank, singular.gt(1e-7 * singular[0]).sum().item<std::int64_t>()) << small.name;
    EXPECT_LT((split.visible - visible).norm().item<double>(), 1e-6) << small.name;
    EXPECT_LT(linearization.jvp(split.hidden).norm().item<double>(),
              1e-8 * linearization.jvp(shift).norm().item<double>())
        << small.name;
    EXPECT_NEAR(split.visible_norm * split.visible_norm + split.hidden_norm * split.hidden_norm,
                split.norm * split.norm, 1e-8 * split.norm * split.norm)
        << small.name;
    EXPECT_GT(split.visible_norm, 0);
    EXPECT_GT(split.hidden_norm, 0);
  }
}

TEST(InformationBounds, AShiftWithinTheRowSpaceIsAllVisibleAndACoarseToleranceSeesLess) {
  const SmallModel small = testing::convolutions();
  const Linearization linearization(*small.model, small.model->random_weights(), small.inputs);
  const at::Tensor shift = linearization.vjp(
      torch::randn({linearization.examples(), linearization.classes()}, at::kDouble));
  const ShiftSplit split = split_shift(linearization, shift);
  EXPECT_LT(split.hidden_norm, 1e-6 * split.norm);
  const ShiftSplit coarse = split_shift(linearization, shift, {.tolerance = 0.1});
  EXPECT_LT(coarse.rank, split.rank);
  EXPECT_GT(coarse.hidden_norm, split.hidden_norm);
  EXPECT_EQ(coarse.tolerance, 0.1);
}

TEST(InformationBounds, ModelsAndQueriesThatDoNotFitAreRefused) {
  const SmallAudit linear = linear_audit(3);
  const SmallAudit curved =
      audit_of(testing::curved_classifier(), testing::some_images({2, 1, 8, 8}));
  EXPECT_NE(refusal([&] {
              white_box_bound(linear.scrubbed, curved.reference);
            }).find("same architecture"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              query_bounds(separate_answers(*linear.model, linear.scrubbed, linear.inputs),
                           separate_answers(*linear.model, linear.reference, linear.inputs,
                                            {.answers = Answers::softmax}));
            }).find("same queries"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
