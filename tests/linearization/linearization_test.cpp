#include "pumice/linearization/linearization.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "pumice/core/error.h"
#include "pumice/linalg/threads.h"
#include "refusal.h"
#include "small_models.h"

namespace pumice {
namespace {

using testing::convolutions;
using testing::dense_jacobian;
using testing::FunctionModel;
using testing::refusal;
using testing::small_models;
using testing::SmallModel;

constexpr double exact = 1e-10;  // float64 against float64
constexpr double single = 1e-4;  // float32 against float64

double relative(const at::Tensor& value, const at::Tensor& reference) {
  const at::Tensor wide = reference.to(at::kDouble);
  return ((value.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

constexpr std::array all_contractions{Contraction::explicit_rows, Contraction::hadamard,
                                      Contraction::class_sharing, Contraction::linear_tail};

TEST(Linearization, EachContractionGivesTheKernelOfTheWrittenDownJacobian) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const at::Tensor jacobian = dense_jacobian(*small.model, weights, small.inputs);
    const at::Tensor dense = jacobian.mm(jacobian.t());
    const Linearization linearization(*small.model, weights, small.inputs);
    EXPECT_LT(relative(linearization.kernel().theta, dense), exact) << small.name;
    for (const Contraction contraction : all_contractions) {
      const Kernel kernel = linearization.kernel({.contraction = contraction});
      EXPECT_LT(relative(kernel.theta, dense), exact)
          << small.name << ", " << contraction_name(contraction) << "\n"
          << kernel.summary.full();
      EXPECT_TRUE(torch::equal(kernel.theta, kernel.theta.t())) << small.name;
    }
  }
}

TEST(Linearization, OnlyTheParametersWithoutARuleTakeTheSlowPathAndTheSummarySaysSo) {
  for (const SmallModel& small : small_models()) {
    const Linearization linearization(*small.model, small.model->random_weights(), small.inputs);
    std::vector<std::string> names;
    for (const std::string& reason : linearization.without_rule()) {
      names.push_back(reason.substr(0, reason.find(':')));
    }
    EXPECT_EQ(names, small.slow) << small.name << "\n" << linearization.kernel().summary.full();
    EXPECT_EQ(linearization.kernel().summary.slow, linearization.without_rule());
  }
}

TEST(Linearization, TheForcedContractionIsUsedAndListed) {
  const SmallModel small = convolutions();
  const Linearization linearization(*small.model, small.model->random_weights(), small.inputs);
  for (const Contraction contraction : all_contractions) {
    const KernelSummary summary = linearization.kernel({.contraction = contraction}).summary;
    int used = 0;
    for (const KernelLayerSummary& layer : summary.layers) {
      used += layer.positions > 0 && layer.contraction == contraction_name(contraction);
      EXPECT_TRUE(layer.positions == 0 || layer.flops > 0) << layer.name;
    }
    // Only the last convolution and the head are followed by nothing but means and linear maps.
    EXPECT_EQ(used, contraction == Contraction::linear_tail ? 2 : 5);
  }
}

TEST(Linearization, RectangularKernelsEqualTheDenseProduct) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const at::Tensor left = small.inputs;
    const at::Tensor right = testing::some_images(left.sizes().vec(), 9).narrow(0, 0, 3);
    const at::Tensor dense = dense_jacobian(*small.model, weights, left)
                                 .mm(dense_jacobian(*small.model, weights, right).t());
    const Linearization first(*small.model, weights, left);
    const Linearization second(*small.model, weights, right);
    for (const Contraction contraction : all_contractions) {
      const at::Tensor theta = first.kernel(second, {.contraction = contraction}).theta;
      EXPECT_EQ(theta.sizes(), dense.sizes());
      EXPECT_LT(relative(theta, dense), exact) << small.name << contraction_name(contraction);
    }
  }
}

TEST(Linearization, ProductsWithTheJacobianAndItsTransposeAgreeWithTheDenseOnesAndEachOther) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const at::Tensor jacobian = dense_jacobian(*small.model, weights, small.inputs);
    Linearization linearization(*small.model, weights, small.inputs);
    const at::Tensor v = torch::randn({linearization.columns()}, at::kDouble);
    const at::Tensor u =
        torch::randn({linearization.examples(), linearization.classes()}, at::kDouble);
    const at::Tensor forward = linearization.jvp(v);
    const at::Tensor backward = linearization.vjp(u);
    EXPECT_LT(relative(forward.flatten(), jacobian.mv(v)), exact) << small.name;
    EXPECT_LT(relative(backward, jacobian.t().mv(u.flatten())), exact) << small.name;
    const double one = forward.flatten().dot(u.flatten()).item<double>();
    EXPECT_NEAR(one, v.dot(backward).item<double>(), 1e-9 * std::abs(one)) << small.name;
    linearization.set_batch_size(2);
    EXPECT_LT(relative(linearization.jvp(v), forward), exact);
    EXPECT_LT(relative(linearization.vjp(u), backward), exact);
  }
}

TEST(Linearization, QueryBlocksAndScaledKernelsEqualTheDenseOnes) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const at::Tensor jacobian = dense_jacobian(*small.model, weights, small.inputs);
    const Linearization linearization(*small.model, weights, small.inputs);
    const at::Tensor variance = torch::rand({linearization.columns()}, at::kDouble);
    const at::Tensor dense = (jacobian * variance).mm(jacobian.t());
    EXPECT_LT(relative(linearization.kernel({.variance = variance}).theta, dense), exact);
    const at::Tensor blocks = linearization.query_blocks(variance);
    const std::int64_t c = linearization.classes();
    for (std::int64_t i = 0; i < linearization.examples(); ++i) {
      EXPECT_LT(relative(blocks[i], dense.narrow(0, i * c, c).narrow(1, i * c, c)), exact)
          << small.name << ", example " << i;
    }
  }
}

TEST(Linearization, FisherDiagonalEqualsTheMeanOfSquaredScores) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const Linearization linearization(*small.model, weights, small.inputs);
    const at::Tensor jacobian = dense_jacobian(*small.model, weights, small.inputs)
                                    .view({small.inputs.size(0), linearization.classes(), -1});
    const at::Tensor shares = linearization.logits().softmax(1);
    at::Tensor dense = at::zeros({linearization.columns()}, at::kDouble);
    for (std::int64_t i = 0; i < shares.size(0); ++i) {
      const at::Tensor mean = shares[i].matmul(jacobian[i]);
      for (std::int64_t y = 0; y < shares.size(1); ++y) {
        dense += shares[i][y] * (jacobian[i][y] - mean).square() / shares.size(0);
      }
    }
    EXPECT_LT(relative(linearization.fisher_diagonal(), dense), exact) << small.name;
  }
}

TEST(Linearization, SeedsGiveCombinationsOfRows) {
  const SmallModel small = convolutions();
  const Weights weights = small.model->random_weights();
  const at::Tensor jacobian = dense_jacobian(*small.model, weights, small.inputs).view({5, 3, -1});
  const Linearization linearization(*small.model, weights, small.inputs);
  const at::Tensor seeds = torch::randn({5, 2, 3}, at::kDouble);
  const at::Tensor rows = seeds.bmm(jacobian).flatten(0, 1);
  for (const Contraction contraction : all_contractions) {
    EXPECT_LT(relative(linearization.kernel({.seeds = seeds, .contraction = contraction}).theta,
                       rows.mm(rows.t())),
              exact)
        << contraction_name(contraction);
  }
}

TEST(Linearization, WhatOneModelWasFoundToBeServesOthersOfItsArchitecture) {
  for (const SmallModel& small : small_models()) {
    const Linearization examined(*small.model, small.model->random_weights(), small.inputs);
    const Weights others = small.model->random_weights(at::kDouble, 11);
    const at::Tensor inputs = small.inputs.narrow(0, 0, 2);
    const Linearization taken_over(examined, *small.model, others, inputs);
    const Linearization own(*small.model, others, inputs);
    EXPECT_TRUE(torch::equal(taken_over.kernel().theta, own.kernel().theta)) << small.name;
    EXPECT_TRUE(torch::equal(taken_over.logits(), own.logits())) << small.name;
  }
  const SmallModel one = small_models().front(), other = small_models().back();
  const Linearization examined(*one.model, one.model->random_weights(), one.inputs);
  EXPECT_EQ(refusal([&] {
              Linearization(examined, *other.model, other.model->random_weights(), other.inputs);
            }),
            "model: its parameters have other names or shapes than those of the model it is "
            "compared with");
}

TEST(Linearization, NoisyAnswersAreLogitsAndBlocksHoweverManyThreadsShareTheExamples) {
  const SmallModel small = convolutions();
  const Weights weights = small.model->random_weights();
  torch::manual_seed(5);
  std::vector<std::int64_t> shape = small.inputs.sizes().vec();
  shape[0] = 41;  // several chunks for each thread, not all equal
  const at::Tensor inputs = torch::randn(shape, at::kDouble);
  const Linearization linearization(*small.model, weights, inputs);
  const at::Tensor variance = torch::rand({linearization.columns()}, at::kDouble);
  const at::Tensor jacobian = dense_jacobian(*small.model, weights, inputs);
  const at::Tensor rows = (jacobian * variance.sqrt()).view({41, linearization.classes(), -1});
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    double last = 0;
    const NoisyAnswers answers =
        linearization.noisy_answers(variance, {.memory = {}, .progress = [&](double share) {
                                                 EXPECT_GT(share, last);
                                                 last = share;
                                               }});
    EXPECT_EQ(last, 1);
    EXPECT_LT(relative(answers.logits, linearization.logits()), exact);
    EXPECT_LT(relative(answers.covariance, rows.bmm(rows.transpose(1, 2))), exact);
    const at::Tensor squares = linearization.sum_of_squared_rows();
    EXPECT_LT(relative(squares, jacobian.square().sum(0)), exact);
    EXPECT_TRUE(torch::equal(squares, linearization.sum_of_squared_rows())) << threads;
  }
  set_threads(available_cores());
}

TEST(Linearization, ChunksThreadsAndTheOrderOfExamplesDoNotMatter) {
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const Linearization linearization(*small.model, weights, small.inputs);
    const at::Tensor theta = linearization.kernel().theta;
    for (const std::int64_t chunk : {1, 2, 4}) {
      EXPECT_LT(relative(linearization.kernel({.chunk = chunk}).theta, theta), exact) << small.name;
    }
    for (const int threads : {2, 1}) {
      set_threads(threads);
      EXPECT_LT(relative(linearization.kernel().theta, theta), exact) << small.name;
    }
    const at::Tensor order = torch::tensor({3, 0, 4, 2, 1});
    const Linearization shuffled(*small.model, weights, small.inputs.index_select(0, order));
    const std::int64_t c = linearization.classes();
    const at::Tensor rows = (order.unsqueeze(1) * c + torch::arange(c).unsqueeze(0)).flatten();
    EXPECT_LT(relative(shuffled.kernel().theta, theta.index_select(0, rows).index_select(1, rows)),
              exact)
        << small.name;
  }
}

TEST(Linearization, TheSameCallGivesTheSameBytes) {
  const SmallModel small = convolutions();
  const Linearization linearization(*small.model, small.model->random_weights(at::kFloat),
                                    small.inputs.to(at::kFloat));
  for (const Contraction contraction : all_contractions) {
    EXPECT_TRUE(torch::equal(linearization.kernel({.contraction = contraction}).theta,
                             linearization.kernel({.contraction = contraction}).theta));
  }
}

TEST(Linearization, SinglePrecisionStaysWithinATenThousandthOfDouble) {
  for (const SmallModel& small : small_models()) {
    const Linearization wide(*small.model, small.model->random_weights(), small.inputs);
    const Linearization narrow(*small.model, small.model->random_weights(at::kFloat),
                               small.inputs.to(at::kFloat));
    for (const Contraction contraction : all_contractions) {
      const Kernel kernel = narrow.kernel({.contraction = contraction});
      EXPECT_EQ(kernel.theta.scalar_type(), at::kDouble);
      EXPECT_LT(relative(kernel.theta, wide.kernel().theta), single)
          << small.name << ", " << contraction_name(contraction);
    }
    EXPECT_LT(relative(narrow.fisher_diagonal(), wide.fisher_diagonal()), single) << small.name;
  }
}

TEST(Linearization, ASmallBudgetMeansMorePassesAndBlocksAndTheSameKernel) {
  bool several_passes = false, several_blocks = false;
  for (const SmallModel& small : small_models()) {
    const Weights weights = small.model->random_weights();
    const at::Tensor inputs = testing::some_images([&] {
      std::vector<std::int64_t> shape = small.inputs.sizes().vec();
      shape[0] = 24;
      return shape;
    }());
    const Linearization linearization(*small.model, weights, inputs);
    const Kernel whole = linearization.kernel();
    EXPECT_EQ(whole.summary.blocks, 1);
    const std::string sentence = refusal([&] { linearization.kernel({.memory = 1000}); });
    EXPECT_NE(sentence.find("needs at least"), std::string::npos) << sentence;
    for (std::int64_t memory = 60 << 10; memory < 4 << 20; memory = memory * 3 / 2) {
      try {
        const Kernel kernel = linearization.kernel({.memory = memory});
        EXPECT_LT(relative(kernel.theta, whole.theta), exact) << small.name;
        EXPECT_LE(kernel.summary.planned_bytes, memory) << small.name;
        several_passes |= kernel.summary.passes > 1;
        several_blocks |= kernel.summary.blocks > 1;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_TRUE(several_passes);
  EXPECT_TRUE(several_blocks);
}

TEST(Linearization, ValuesThatAreNotFiniteAreRefusedByNameAndExample) {
  const SmallModel small = convolutions();
  Weights weights = small.model->random_weights();
  at::Tensor inputs = small.inputs.clone();
  inputs[3][0][0][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal([&] { Linearization(*small.model, weights, inputs); }).find("example 3"),
            std::string::npos);
  weights.tensor("norm.bias")[1] = std::numeric_limits<double>::infinity();
  EXPECT_NE(
      refusal([&] { Linearization(*small.model, weights, small.inputs); }).find("'norm.bias'"),
      std::string::npos);

  // sqrt has an infinite slope at 0: only example 4 of this model reaches it.
  const FunctionModel root({{"a.weight", {2, 3}}, {"b.weight", {2, 2}}},
                           [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
                             return at::linear(at::linear(x.flatten(1), w[0]).abs().sqrt(), w[1]);
                           });
  at::Tensor rows = testing::some_images({5, 3});
  rows[4].zero_();
  const Linearization linearization(root, root.random_weights(), rows);
  const std::string sentence = refusal([&] { linearization.kernel(); });
  EXPECT_NE(sentence.find("'a.weight'"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("example 4"), std::string::npos) << sentence;
}

TEST(Linearization, ModelsWhoseAnswersDependOnTheBatchOrOnChanceAreRefused) {
  const auto with = [](FunctionModel::Function function) {
    return FunctionModel({{"a.weight", {3, 4}}}, std::move(function));
  };
  const FunctionModel batch_norm = with([](const std::vector<at::Tensor>& w, const at::Tensor& x) {
    return at::batch_norm(at::linear(x, w[0]), {}, {}, {}, {}, true, 0.1, 1e-5, false);
  });
  EXPECT_NE(refusal([&] {
              Linearization(batch_norm, batch_norm.random_weights(), testing::some_images({5, 4}));
            }).find("in its batch"),
            std::string::npos);
  const FunctionModel dropout = with([](const std::vector<at::Tensor>& w, const at::Tensor& x) {
    return at::linear(at::dropout(x, 0.5, true), w[0]);
  });
  EXPECT_NE(refusal([&] {
              Linearization(dropout, dropout.random_weights(), testing::some_images({5, 4}));
            }).find("asked twice"),
            std::string::npos);
}

TEST(Linearization, AModelThatTakesAnotherWayForOtherExamplesIsRefused) {
  const FunctionModel branching({{"a.weight", {2, 3}}, {"b.weight", {2, 2}}},
                                [](const std::vector<at::Tensor>& w, const at::Tensor& x) {
                                  const at::Tensor y = at::linear(x, w[0]);
                                  return x.max().item<double>() > 50 ? at::linear(y.tanh(), w[1])
                                                                     : y;
                                });
  at::Tensor rows = testing::some_images({5, 3});
  rows[4] += 100;
  const Linearization linearization(branching, branching.random_weights(), rows);
  EXPECT_NE(refusal([&] { linearization.kernel({.chunk = 1}); }).find("different ways"),
            std::string::npos);
}

TEST(Linearization, WrongShapesAreRefusedWithTheRightOnes) {
  const SmallModel small = convolutions();
  const Weights weights = small.model->random_weights();
  const Linearization linearization(*small.model, weights, small.inputs);
  EXPECT_NE(refusal([&] { linearization.jvp(at::zeros({3})); }).find("must have"),
            std::string::npos);
  EXPECT_NE(refusal([&] { linearization.vjp(at::zeros({3})); }).find("must be 5×3"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              linearization.query_blocks(-at::ones({linearization.columns()}));
            }).find(">= 0"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              linearization.kernel({.seeds = at::zeros({5, 2, 9})});
            }).find("5×S×3"),
            std::string::npos);
  const Linearization other(*small.model, small.model->random_weights(at::kDouble, 8),
                            small.inputs);
  EXPECT_NE(refusal([&] { linearization.kernel(other); }).find("share one model"),
            std::string::npos);
}

TEST(Linearization, ProgressRisesToOneAndAnExceptionFromItGivesUp) {
  const SmallModel small = convolutions();
  const Linearization linearization(*small.model, small.model->random_weights(), small.inputs);
  double last = 0;
  linearization.kernel({.progress = [&](double share) {
    EXPECT_GE(share, last);
    last = share;
  }});
  EXPECT_NEAR(last, 1, 1e-6);
  EXPECT_THROW(linearization.kernel({.progress = [](double) { fail("enough"); }}), Error);
}

}  // namespace
}  // namespace pumice
