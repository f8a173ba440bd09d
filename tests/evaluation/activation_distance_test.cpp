#include "pumice/evaluation/activation_distance.h"

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

at::Tensor distances_between(const SmallAudit& audit, const Weights& one, const Weights& other,
                             std::int64_t batch_size = 256) {
  return activation_distances(softmax_outputs(*audit.model, one, audit.inputs, batch_size),
                              softmax_outputs(*audit.model, other, audit.inputs, batch_size));
}

SmallAudit curved_audit() {
  return audit_of(testing::curved_classifier(), testing::some_images({7, 1, 8, 8}), 0.3);
}

TEST(ActivationDistance, IsTheSumOfAbsoluteDifferencesOfProbabilities) {
  const SmallAudit audit = curved_audit();
  const Weights &one = audit.scrubbed.mean, &other = audit.reference.mean;
  const at::Tensor distances = distances_between(audit, one, other, 3);
  ASSERT_EQ(distances.numel(), 7);
  for (std::int64_t i = 0; i < 7; ++i) {
    const at::Tensor x = audit.inputs.narrow(0, i, 1);
    const at::Tensor first = audit.model->logits(one, x)[0].exp();
    const at::Tensor second = audit.model->logits(other, x)[0].exp();
    double expected = 0;
    for (std::int64_t k = 0; k < 3; ++k) {
      expected += std::abs((first[k] / first.sum() - second[k] / second.sum()).item<double>());
    }
    EXPECT_NEAR(distances[i].item<double>(), expected, 1e-12);
    EXPECT_GT(expected, 1e-3);
  }
}

TEST(ActivationDistance, IsSymmetricAndZeroForTheSameWeightsAndAtMostTwo) {
  const SmallAudit audit = curved_audit();
  const Weights &one = audit.scrubbed.mean, &other = audit.reference.mean;
  EXPECT_EQ(distances_between(audit, one, one).abs().max().item<double>(), 0);
  const at::Tensor there = distances_between(audit, one, other);
  EXPECT_TRUE(torch::equal(there, distances_between(audit, other, one)));
  const Weights far{one.layout, -1000 * one.flat}, near{one.layout, 1000 * one.flat};
  const at::Tensor opposite = distances_between(audit, far, near);
  EXPECT_LE(opposite.max().item<double>(), 2 + 1e-12);
  EXPECT_GT(opposite.max().item<double>(), 1.9);
}

TEST(ActivationDistance, ThePathBeginsAndEndsAtItsEnds) {
  const SmallAudit audit = curved_audit();
  const Weights &from = audit.scrubbed.mean, &to = audit.reference.mean;
  const Weights target = audit.model->random_weights(at::kDouble, 9);
  const std::vector<double> positions{0, 0.25, 1};
  const at::Tensor path =
      activation_distances(softmax_outputs_along(*audit.model, from, to, audit.inputs, positions),
                           softmax_outputs(*audit.model, target, audit.inputs));
  ASSERT_EQ(path.sizes(), (std::vector<std::int64_t>{3, 7}));
  EXPECT_TRUE(torch::equal(path[0], distances_between(audit, from, target)));
  EXPECT_TRUE(torch::equal(path[2], distances_between(audit, to, target)));
  const Weights between{from.layout, from.flat + 0.25 * (to.flat - from.flat)};
  const at::Tensor expected = distances_between(audit, between, target);
  EXPECT_LT((path[1] - expected).abs().max().item<double>(), 1e-12);
  EXPECT_GT((path[1] - path[0]).abs().max().item<double>(), 1e-3);
}

TEST(ActivationDistance, TheReadoutIsTheMeanWhateverTheOrder) {
  const SmallAudit audit = curved_audit();
  const at::Tensor distances = distances_between(audit, audit.scrubbed.mean, audit.reference.mean);
  const Readout readout = activation_distance_readout("cohort", distances);
  EXPECT_NEAR(readout.value, distances.mean().item<double>(), 1e-14);
  EXPECT_EQ(readout.name, "activation distance on cohort");
  const Readout reversed = activation_distance_readout("cohort", distances.flip({0}));
  EXPECT_EQ(readout.value, reversed.value);
  EXPECT_EQ(readout.interval->low, reversed.interval->low);
}

TEST(ActivationDistance, WeightsOfAnotherModelAndEmptySetsAreRefused) {
  const SmallAudit audit = curved_audit();
  const Weights foreign = testing::linear_classifier()->random_weights();
  EXPECT_NE(refusal([&] {
              distances_between(audit, foreign, audit.reference.mean);
            }).find("other names and shapes"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              softmax_outputs(*audit.model, audit.scrubbed.mean, audit.inputs.narrow(0, 0, 0));
            }).find("no examples"),
            std::string::npos);
  const at::Tensor outputs = softmax_outputs(*audit.model, audit.scrubbed.mean, audit.inputs);
  EXPECT_NE(refusal([&] {
              activation_distances(outputs, outputs.narrow(0, 0, 3));
            }).find("same examples"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
