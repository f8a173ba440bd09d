#include "pumice/index/forgetting_index.h"

#include <gtest/gtest.h>

#include <cmath>

#include "pumice/forgetting/scale_rule.h"
#include "refusal.h"
#include "small_index.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small index
namespace files = std::filesystem;

double relative(const at::Tensor& value, const at::Tensor& expected) {
  return (value - expected).norm().item<double>() / expected.norm().item<double>();
}

// w + s·(wlin(D∖F) − wlin(D)) with a Jacobian that was written down, in float64.
at::Tensor dense_shift(const SmallIndex& small, const std::vector<std::int64_t>& forgotten,
                       double scale) {
  const Weights wide{small.checkpoint.weights.layout,
                     small.checkpoint.weights.flat.to(at::kDouble)};
  const at::Tensor inputs = network_inputs(small.data.images, small.normalization).to(at::kDouble);
  const at::Tensor jacobian = dense_jacobian(*small.checkpoint.model, wide, inputs);
  const at::Tensor logits = small.checkpoint.model->logits(wide, inputs).detach();
  const at::Tensor residual =
      (logits.softmax(1) - at::one_hot(small.data.labels, 3).to(at::kDouble)).reshape({-1});
  const at::Tensor u = wide.flat - small.start.to(at::kDouble);
  const auto wlin = [&](const std::vector<std::int64_t>& part) {
    std::vector<std::int64_t> rows;
    for (const std::int64_t i : part) rows.insert(rows.end(), {3 * i, 3 * i + 1, 3 * i + 2});
    const at::Tensor index = at::tensor(rows, at::kLong);
    const at::Tensor own = jacobian.index_select(0, index);
    at::Tensor matrix = own.mm(own.t());
    matrix.diagonal().add_(small.weight_decay * static_cast<double>(part.size()));
    const at::Tensor right = residual.index_select(0, index) - own.mv(u);
    return -own.t().mv(at::linalg_solve(matrix, right.unsqueeze(1)).squeeze(1));
  };
  const Split part = small.without(forgotten);
  return scale * (wlin(part.retain) - wlin(small.split.retain));
}

TEST(ForgettingIndex, TwentyRequestsInTurnEqualOneForTheirUnionAndWhatConsistentGives) {
  const SmallIndex small(1.5), same(1.5);
  std::vector<std::int64_t> forgotten;
  Weights last;
  for (std::int64_t i = 0; i < 20; ++i) {
    // Two at a time: 0, 31, 2, 33, …
    const std::vector<std::int64_t> cohort{2 * i, (2 * i + 31) % 60};
    forgotten.insert(forgotten.end(), cohort.begin(), cohort.end());
    last = small.request(cohort, "released " + std::to_string(i));
  }
  const at::Tensor before = small.checkpoint.weights.flat;
  const at::Tensor shift = last.flat - before;
  // Float32 weights: the same arithmetic up to the order of one sum.
  const at::Tensor at_once = same.request(forgotten).flat - before;
  EXPECT_LT(relative(shift, at_once), 1e-6);

  const double scale = ForgettingIndex(small.folder).content().terms.scale;
  const Split part = small.without(forgotten);
  const ForgettingTask task = small.task(part);
  SharedProblems shared(task);
  MethodOptions options;
  options.scale = scale;
  const ShiftResult consistent = method_named("consistent").make(options)->shift(task, shared);
  ASSERT_TRUE(consistent.summary.converged);
  // Both in float32, one from a difference of weights and one from a difference of coefficients.
  EXPECT_LT(relative(shift, consistent.weights.flat - before), 1e-4);
  EXPECT_LT(relative(shift.to(at::kDouble), dense_shift(small, forgotten, scale)), 1e-4);
}

TEST(ForgettingIndex, TheScaleIsThatOfTheRuleWithoutUnseenExamplesOrTheGivenOne) {
  const SmallIndex small;
  const IndexContent content = ForgettingIndex(small.folder).content();
  const at::Tensor u = (small.checkpoint.weights.flat - small.start).to(at::kDouble);
  EXPECT_EQ(content.terms.scale, scale_without_examples(u, content.wlin).scale);
  const SmallIndex given(1.25);
  EXPECT_EQ(ForgettingIndex(given.folder).content().terms.scale, 1.25);
}

TEST(ForgettingIndex, NoByteOfAForgottenExampleIsLeftInTheFolder) {
  const SmallIndex small;
  const std::vector<std::int64_t> forgotten{3, 17, 42}, kept{4, 18, 43};
  const IndexContent before = ForgettingIndex(small.folder).content();
  // What would betray an example: its id, its digests (as bytes or text), its numbers.
  const auto traces = [&](std::int64_t row) {
    const auto place = static_cast<std::size_t>(row);
    std::vector<std::string> found{small.data.ids[place] + "\n",
                                   "\"" + small.data.ids[place] + "\"", before.ids[place],
                                   before.pixels[place]};
    for (const at::Tensor& numbers : {before.residual, before.displaced}) {
      for (std::int64_t c = 0; c < 3; ++c) {
        found.push_back(bytes_of(numbers[row][c].item<double>()));
      }
    }
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t column = 0; column < before.kernel.size(1); ++column) {
        found.push_back(bytes_of(before.kernel[3 * row + c][column].item<double>()));
      }
    }
    return found;
  };
  const auto found = [&](const std::vector<std::int64_t>& rows) {
    const std::string bytes = bytes_in(small.folder);
    std::size_t count = 0;
    for (const std::int64_t row : rows) {
      for (const std::string& trace : traces(row)) count += bytes.find(trace) != bytes.npos;
    }
    return count;
  };
  EXPECT_GT(found(forgotten), 500U);
  small.request(forgotten);
  EXPECT_EQ(found(forgotten), 0U);
  EXPECT_GT(found(kept), 500U);
  EXPECT_EQ(ForgettingIndex(small.folder).ledger().entries().back()["forgotten"], 3);
}

TEST(ForgettingIndex, TheForgottenNeedNotBeInTheDataButEveryoneElseMustBeThereUnchanged) {
  SmallIndex small;
  small.request({0, 1, 2}, "first");
  const std::vector<std::string> next = small.ids({10});
  const auto answered_with = [&](const Dataset& data) {
    const auto before = small.state();
    const std::string sentence =
        refusal([&] { ForgettingIndex(small.folder).answer(next, data, {}); });
    EXPECT_EQ(small.state(), before);
    return sentence;
  };
  std::vector<std::int64_t> rest;  // in another order, without the forgotten and the cohort
  for (std::int64_t i = 59; i > 2; --i) {
    if (i != 10) rest.push_back(i);
  }
  const Dataset left = subset(small.data, rest);
  EXPECT_EQ(answered_with(left), "accepted");
  const auto weights = [&](const Dataset& data) {
    return ForgettingIndex(small.folder).answer(next, data, {}).scrubbed.sample.flat;
  };
  EXPECT_TRUE(at::equal(weights(left), weights(small.data)));

  rest.pop_back();
  EXPECT_NE(answered_with(subset(small.data, rest)).find("1 of the 56 examples"),
            std::string::npos);
  Dataset repainted = subset(small.data, small.split.retain);
  repainted.images[20][0][3][3] += 1;
  EXPECT_NE(answered_with(repainted).find("'train/20' has another picture or label"),
            std::string::npos);
  Dataset relabelled = subset(small.data, small.split.retain);
  relabelled.labels[20] = (small.data.labels[20] + 1) % 3;
  EXPECT_NE(answered_with(relabelled).find("'train/20' has another picture or label"),
            std::string::npos);
  Dataset renamed = small.data;
  renamed.classes.names[1] = "other";
  EXPECT_NE(answered_with(renamed).find("classes"), std::string::npos);
}

TEST(ForgettingIndex, CohortsThatCannotBeForgottenAreRefusedAndNothingChanges) {
  const SmallIndex small;
  small.request({5});
  const auto before = small.state();
  const auto refused = [&](const std::vector<std::string>& ids) {
    return refusal([&] {
      const ForgettingIndex index(small.folder);
      index.examine(ids);
    });
  };
  EXPECT_EQ(refused(small.ids({5})),
            "cohort: 1 id ('train/5') not among the 59 examples of the index, was forgotten "
            "already or never part of it");
  EXPECT_NE(refused({"train/1", "nobody"}).find("'nobody'"), std::string::npos);
  EXPECT_NE(refused(small.ids({7, 7})).find("repeated"), std::string::npos);
  EXPECT_NE(refused({}).find("empty"), std::string::npos);
  std::vector<std::int64_t> everyone = small.without({5}).retain;
  EXPECT_NE(refused(small.ids(everyone)).find("all 59 examples that are left"), std::string::npos);
  EXPECT_EQ(small.state(), before);
}

TEST(ForgettingIndex, TheExaminationSeesCopiesVanishingClassesAndGrowingShares) {
  const SmallIndex small;
  const auto advice = [&](const std::vector<std::int64_t>& positions, const std::string& name) {
    for (const auto& check : ForgettingIndex(small.folder).examine(small.ids(positions)).checks) {
      if (check.name == name) return check.advice;
    }
    return Advice::refusal;
  };
  EXPECT_EQ(advice({0}, "share forgotten"), Advice::go);        // 1.7 %
  EXPECT_EQ(advice({0, 1, 2}, "share forgotten"), Advice::go);  // 5 %
  EXPECT_EQ(advice({0, 1, 2, 3}, "share forgotten"), Advice::warning);
  EXPECT_EQ(advice({0, 1}, "classes"), Advice::go);
  std::vector<std::int64_t> one_class;
  for (std::int64_t i = 1; i < 60; i += 3) one_class.push_back(i);
  EXPECT_EQ(advice(one_class, "classes"), Advice::warning);
  EXPECT_EQ(advice({0}, "duplicates"), Advice::go);

  const ForgettingIndex index(small.folder);
  EXPECT_EQ(index.advice(57), "");
  EXPECT_NE(index.advice(56).find("6.7 % are forgotten since the point of linearisation, more "
                                  "than 5 %: linearise again"),
            std::string::npos);
  EXPECT_NE(index.advice(40).find("33.3 % of the training set are forgotten, more than 20 %: "
                                  "retrain"),
            std::string::npos);
}

TEST(ForgettingIndex, ACopyOfTheCohortAmongThoseWhoStayIsARefusal) {
  SmallIndex small;
  small.data.images[9] = small.data.images[0];
  const ForgettingTask task = small.task(small.split);
  SharedProblems shared(task);
  build_index(small.home / "copies", {.task = task, .checkpoint = small.checkpoint, .data = {}},
              shared);
  const ForgettingIndex index(small.home / "copies");
  EXPECT_EQ(index.examine(small.ids({0})).advice(), Advice::refusal);
  EXPECT_NE(index.examine(small.ids({0, 9})).advice(), Advice::refusal);
}

TEST(ForgettingIndex, NoiseIsShapedByWhatIsRetained) {
  const SmallIndex small;
  small.request({1, 2, 3}, "first");
  const NoiseOptions noise{.scale = 1e-4, .shape = NoiseShape::paper, .seed = 7};
  const IndexAnswer answer =
      ForgettingIndex(small.folder).answer(small.ids({4, 5}), small.data, noise);
  const Split part = small.without({1, 2, 3, 4, 5});
  const WeightDistribution expected =
      with_noise(small.task(part), noise, answer.scrubbed.distribution.mean);
  EXPECT_LT(relative(answer.scrubbed.distribution.variance, expected.variance), 1e-5);
  EXPECT_GT(
      (answer.scrubbed.sample.flat - answer.scrubbed.distribution.mean.flat).norm().item<double>(),
      0);
  EXPECT_TRUE(answer.scrubbed.summary.noise->reproducible);
}

TEST(ForgettingIndex, TheLedgerSaysHowManyButNotWho) {
  const SmallIndex small;
  const Weights released = small.request({1, 2, 3}, "first", {.scale = 1e-9});
  const ForgettingIndex index(small.folder);
  const Ledger::Json& entry = index.ledger().entries().back();
  EXPECT_EQ(entry["kind"], "request");
  EXPECT_EQ(entry["request"], 1);
  EXPECT_EQ(entry["forgotten"], 3);
  EXPECT_EQ(entry["retained"], 57);
  EXPECT_NEAR(entry["share_forgotten"].get<double>(), 0.05, 1e-12);
  EXPECT_EQ(entry["released"], digest(*small.checkpoint.model, released));
  EXPECT_EQ(entry["noise"]["scale"], 1e-9);
  EXPECT_EQ(entry["noise"]["private"], true);
  EXPECT_LT(entry["solver_residual"].get<double>(), 1e-10);
  EXPECT_TRUE(entry["cohort"].get<std::string>().starts_with("blake2b-keyed:"));
}

TEST(ForgettingIndex, ARefreshIsANewIndexOfTheRetainedAtTheReleasedWeights) {
  const SmallIndex small;
  const std::vector<std::int64_t> forgotten{6, 7, 8, 9};
  const Weights released = small.request(forgotten, "released", {.scale = 1e-7});
  const Checkpoint model{small.checkpoint.model, released, small.checkpoint.metadata};
  const std::string old_point = bytes_of(small.checkpoint.weights.flat[0].item<float>()) +
                                bytes_of(small.checkpoint.weights.flat[1].item<float>());
  EXPECT_NE(bytes_in(small.folder).find(old_point), std::string::npos);
  {
    ForgettingIndex index(small.folder);
    index.refresh(model, small.data);
  }
  EXPECT_EQ(bytes_in(small.folder).find(old_point), std::string::npos);
  const ForgettingIndex index(small.folder);
  const Ledger::Json& entry = index.ledger().entries().back();
  EXPECT_EQ(entry["kind"], "refresh");
  EXPECT_EQ(entry["model"], digest(*model.model, released));
  EXPECT_EQ(entry["wiped_point"], digest(*model.model, small.checkpoint.weights));
  EXPECT_EQ(index.advice(index.content().examples()).find("retrain"), std::string::npos);
  EXPECT_EQ(index.share_since_point(56), 0);

  // The same by hand.
  const Dataset rest = subset(small.data, small.without(forgotten).retain);
  Split all;
  for (std::int64_t i = 0; i < rest.size(); ++i) all.retain.push_back(i);
  const ForgettingTask task{.model = *model.model,
                            .weights = released,
                            .centre = small.start,
                            .start = {},
                            .train = rest,
                            .split = all,
                            .normalization = small.normalization,
                            .weight_decay = small.weight_decay,
                            .recipe = {}};
  SharedProblems shared(task);
  build_index(small.home / "by hand", {.task = task, .checkpoint = model, .data = {}}, shared);
  const ForgettingIndex by_hand(small.home / "by hand");
  EXPECT_LT(relative(index.content().kernel, by_hand.content().kernel), 1e-6);
  EXPECT_LT(relative(index.content().wlin, by_hand.content().wlin), 1e-5);
  EXPECT_EQ(index.content().terms.built_examples, 60);
  const auto next = small.ids({20});
  EXPECT_LT(relative(index.answer(next, small.data, {}).scrubbed.sample.flat - released.flat,
                     by_hand.answer(next, small.data, {}).scrubbed.sample.flat - released.flat),
            1e-4);
}

TEST(ForgettingIndex, ARefreshWipesTheOldPointAlsoWhereItIsTheCentreOfTheDecay) {
  const SmallIndex small;
  ForgettingTask task = small.task(small.split);
  task.centre = small.checkpoint.weights.flat;
  SharedProblems shared(task);
  const files::path folder = small.home / "self";
  build_index(folder,
              {.task = task, .checkpoint = small.checkpoint, .data = {}, .decay_centre = "self"},
              shared);
  const std::string old_point = bytes_of(small.checkpoint.weights.flat[0].item<float>()) +
                                bytes_of(small.checkpoint.weights.flat[1].item<float>());
  Weights released;
  {
    ForgettingIndex index(folder);
    const IndexAnswer answer = index.answer(small.ids({6, 7, 8}), small.data, {});
    released = answer.scrubbed.sample;
    index.commit(answer, {});
    EXPECT_NE(bytes_in(folder).find(old_point), std::string::npos);
    index.refresh({small.checkpoint.model, released, small.checkpoint.metadata}, small.data);
  }
  EXPECT_EQ(bytes_in(folder).find(old_point), std::string::npos);
  EXPECT_TRUE(at::equal(ForgettingIndex(folder).content().centre, released.flat));
}

TEST(ForgettingIndex, ARefreshTakesTheLastReleaseAndNothingElse) {
  const SmallIndex small;
  const auto refused = [&](const Weights& weights) {
    const auto before = small.state();
    const std::string sentence = refusal([&] {
      ForgettingIndex index(small.folder);
      index.refresh({small.checkpoint.model, weights, {}}, small.data);
    });
    EXPECT_EQ(small.state(), before);
    return sentence;
  };
  EXPECT_NE(refused(small.checkpoint.weights).find("nothing was released"), std::string::npos);
  const Weights first = small.request({1}, "first");
  small.request({2}, "second");
  EXPECT_NE(refused(first).find("not what request 2 released"), std::string::npos);
  EXPECT_NE(refused(small.checkpoint.weights).find("already"), std::string::npos);
}

TEST(ForgettingIndex, AnIndexThatWouldNotFitIntoMemorySaysHowMuchItTakes) {
  SmallIndex small;
  ForgettingTask task = small.task(small.split);
  task.linear.memory = 100000;
  SharedProblems shared(task);
  const std::string sentence = refusal([&] {
    build_index(small.home / "large", {.task = task, .checkpoint = small.checkpoint, .data = {}},
                shared);
  });
  EXPECT_NE(sentence.find("60 examples with 3 classes takes 1012 KiB, allowed are 98 KiB"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("forget without an index"), std::string::npos);
  EXPECT_FALSE(files::exists(small.home / "large"));
}

}  // namespace
}  // namespace pumice
