#include "pumice/forgetting/applicability.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "forgetting_tasks.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests

const ApplicabilityCheck& named(const Applicability& applicability, const std::string& name) {
  for (const ApplicabilityCheck& check : applicability.checks) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return applicability.checks.front();
}

Applicability examined(const SmallRequest& request, ApplicabilityOptions options = {}) {
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  return examine(task, shared, options);
}

TEST(Applicability, AConvergedLinearModelGetsAGoForEverything) {
  const Applicability result = examined(linear_request({3, 4}));
  EXPECT_EQ(result.advice(), Advice::go) << result.text();
  EXPECT_LT(result.gradient_norm, 1e-9 * result.data_gradient_norm);
  EXPECT_NEAR(*result.implied_decay, 0.1, 1e-9);
  EXPECT_LT(*result.linearity_error, 1e-9);
  EXPECT_GT(result.cohort_gradient_norm, 0);
  EXPECT_EQ(to_json(result)["advice"], "go");
}

TEST(Applicability, AnotherDecayThanTheTrainingsShowsInTheBalance) {
  SmallRequest request = linear_request({3, 4});
  request.weight_decay = 1;  // it was trained with 0.1
  const Applicability result = examined(request);
  EXPECT_EQ(named(result, "stationary point").advice, Advice::warning);
  EXPECT_NEAR(*result.implied_decay, 0.1, 1e-9);
}

TEST(Applicability, AGradientThatPointsTheWrongWayIsRefused) {
  SmallRequest request = linear_request({3, 4});
  request.weights.flat = 2 * request.start - request.weights.flat;  // away from the data
  const Applicability result = examined(request);
  EXPECT_EQ(named(result, "stationary point").advice, Advice::refusal);
  EXPECT_LT(*result.implied_decay, 0);
}

TEST(Applicability, CopiesOfTheCohortAmongTheRetainedAreRefused) {
  SmallRequest request = linear_request({3, 4});
  request.data.images[10].copy_(request.data.images[4]);
  const Applicability result = examined(request);
  EXPECT_EQ(result.identical_pixels, 1);
  EXPECT_EQ(named(result, "duplicates").advice, Advice::refusal);
}

TEST(Applicability, AVariantOfACohortExampleIsWarnedOf) {
  SmallRequest request = linear_request({3, 4});
  request.data.images[10].copy_(request.data.images[4]);
  request.data.images[10][0][7][7] += 1;
  const Applicability result = examined(request);
  EXPECT_EQ(result.identical_pixels, 0);
  EXPECT_EQ(result.near_duplicates, 1);
  EXPECT_EQ(named(result, "duplicates").advice, Advice::warning);
}

// More than pass by at once, and more than tell what is usual.
TEST(Applicability, VariantsAreFoundAmongThousandsOfRetainedExamples) {
  SmallRequest request = linear_request({3, 4});
  request.data = blob_dataset(800);
  request.split = split_off(2400, {3, 4});
  for (const std::int64_t position : {1100, 2300}) {
    request.data.images[position].copy_(request.data.images[4]);
    request.data.images[position][0][7][7] += 1;
  }
  EXPECT_EQ(examined(request).near_duplicates, 1);
  request.data.images[2300].copy_(request.data.images[3]);
  request.data.images[1100].copy_(request.data.images[3]);
  EXPECT_EQ(examined(request).identical_pixels, 1);
}

TEST(Applicability, AClassThatVanishesAndACohortOfEverythingAreSaid) {
  const Applicability vanished = examined(linear_request({0, 3, 6, 9, 12, 15, 18, 21}));
  EXPECT_NE(named(vanished, "classes").sentence.find("class 0"), std::string::npos);
  const Applicability everything_goes = examined(linear_request(everything(24)));
  EXPECT_NE(named(everything_goes, "classes").sentence.find("the cohort is everything"),
            std::string::npos);
}

TEST(Applicability, WhatIsNotKnownIsWarnedOf) {
  const SmallRequest request = linear_request({3, 4});
  ForgettingTask task = request.task();
  task.start.reset();
  SharedProblems shared(task);
  const Applicability result =
      examine(task, shared, {.decay_known = false, .start_buffers = {}, .excluded = "3 of 24"});
  EXPECT_EQ(named(result, "linearity").advice, Advice::warning);
  EXPECT_EQ(named(result, "weight decay").advice, Advice::warning);
  EXPECT_EQ(named(result, "training set").advice, Advice::warning);
  EXPECT_FALSE(result.linearity_error);
}

}  // namespace
}  // namespace pumice
