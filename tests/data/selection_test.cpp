#include "pumice/data/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/made_files.h"
#include "pumice/data/data_request.h"
#include "pumice/data/memory_source.h"
#include "pumice/data/normalization.h"

namespace pumice::testing {
namespace {

// `per_class` training and ten test examples of the classes 3, 5 and 8, mixed.
MemorySource made_source(std::int64_t per_class = 20, const std::string& prefix = "train") {
  const auto part = [](const std::string& name, std::int64_t count) {
    MemoryPart made;
    for (std::int64_t i = 0; i < 3 * count; ++i) {
      made.listing.ids.push_back(numbered_id(name, i));
      made.listing.labels.push_back(i % 3);
    }
    made.images =
        at::arange(3 * count, at::kByte).view({-1, 1, 1, 1}).expand({-1, 1, 4, 4}).contiguous();
    return made;
  };
  return {
      "made", {{"ant", "bee", "cow"}, {3, 5, 8}}, part(prefix, per_class), part("test", 10), {}};
}

std::vector<std::string> ids_of_class(const Dataset& dataset, std::int64_t original_label) {
  std::vector<std::string> ids;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const auto label = static_cast<std::size_t>(dataset.labels[i].item<std::int64_t>());
    if (dataset.classes.original_labels[label] == original_label) {
      ids.push_back(dataset.ids[static_cast<std::size_t>(i)]);
    }
  }
  return ids;
}

bool contains_all(std::vector<std::string> large, std::vector<std::string> small) {
  std::sort(large.begin(), large.end());
  std::sort(small.begin(), small.end());
  return std::includes(large.begin(), large.end(), small.begin(), small.end());
}

TEST(Selection, TheSameSeedDrawsTheSameAndAnotherSeedDoesNot) {
  const MemorySource source = made_source();
  const SelectionOptions options{.per_class = 5, .validation_per_class = 4, .seed = 1};
  const Selection first = select(source, options);
  const Selection second = select(source, options);
  EXPECT_EQ(first.train.ids, second.train.ids);
  EXPECT_EQ(first.validation.ids, second.validation.ids);
  EXPECT_EQ(digest(first.train), digest(second.train));
  SelectionOptions other = options;
  other.seed = 2;
  EXPECT_NE(select(source, other).train.ids, first.train.ids);
}

// Pinned, not derived: a change of the draw would silently change every later result.
TEST(Selection, DrawsWhatItDrewBefore) {
  const Selection selection = select(made_source(), {.classes = "3", .per_class = 3, .seed = 1});
  EXPECT_EQ(selection.train.ids,
            (std::vector<std::string>{"train/00012", "train/00018", "train/00051"}));
}

TEST(Selection, ImagesBelongToTheirIdsInTheOrderOfTheSource) {
  const Selection selection = select(made_source(), {.classes = "5,8", .per_class = 7});
  EXPECT_TRUE(std::is_sorted(selection.train.ids.begin(), selection.train.ids.end()));
  for (std::int64_t i = 0; i < selection.train.size(); ++i) {
    const int pixel = selection.train.images[i].max().item<int>();
    EXPECT_EQ(selection.train.ids[static_cast<std::size_t>(i)], numbered_id("train", pixel));
    EXPECT_EQ(selection.train.labels[i].item<std::int64_t>(), pixel % 3 - 1);
  }
  EXPECT_EQ(selection.train.classes.names, (std::vector<std::string>{"bee", "cow"}));
  EXPECT_EQ(selection.train.classes.original_labels, (std::vector<std::int64_t>{5, 8}));
}

TEST(Selection, ALargerDrawKeepsTheSmallerOne) {
  const MemorySource source = made_source();
  const Dataset small = select(source, {.per_class = 4}).train;
  const Dataset large = select(source, {.per_class = 9}).train;
  EXPECT_TRUE(contains_all(large.ids, small.ids));
}

TEST(Selection, OtherClassesDoNotChangeTheDraw) {
  const MemorySource source = made_source();
  const Dataset all = select(source, {.per_class = 6}).train;
  const Dataset one = select(source, {.classes = "bee", .per_class = 6}).train;
  EXPECT_EQ(ids_of_class(all, 5), one.ids);
}

TEST(Selection, ValidationIsDisjointAndDoesNotMoveTraining) {
  const MemorySource source = made_source();
  const Selection with = select(source, {.per_class = 12, .validation_per_class = 8});
  const Selection without = select(source, {.per_class = 12});
  EXPECT_EQ(with.train.ids, without.train.ids);
  EXPECT_EQ(with.validation.size(), 24);
  const std::set<std::string> train(with.train.ids.begin(), with.train.ids.end());
  for (const std::string& id : with.validation.ids) EXPECT_FALSE(train.contains(id)) << id;
  EXPECT_EQ(select(source, {.validation_per_class = 5}).train.size(), 45);
}

TEST(Selection, TooFewExamplesAreAnErrorThatNamesTheClass) {
  const MemorySource source = made_source();
  const auto error = [&](const SelectionOptions& options) {
    return error_of([&] { select(source, options); });
  };
  expect_contains(error({.per_class = 21}), "class 'ant' has 20 examples, but 21");
  expect_contains(error({.per_class = 18, .validation_per_class = 3}), "18 + 3 for validation");
  expect_contains(error({.validation_per_class = 20}), "class 'ant' has 20 examples");
  expect_contains(error({.test_per_class = 11}), "test: class 'ant' has 10");
  expect_contains(error({.per_class = 0}), "per-class: 0");
  expect_contains(error({.validation_per_class = -1}), "validation-per-class: -1");
}

TEST(Selection, ATestSetFromElsewhereKeepsItsIdsApart) {
  const MemorySource source = made_source();
  const MemorySource other = made_source(15, "train");
  const Selection selection = select(source, {.test_per_class = 4}, &other);
  EXPECT_EQ(selection.test.size(), 12);
  for (const std::string& id : selection.test.ids) EXPECT_TRUE(id.starts_with("test/")) << id;
  const MemorySource strange("strange", {{"dog"}, {1}},
                             {{{"a"}, {0}}, at::zeros({1, 1, 4, 4}, at::kByte)}, {}, {});
  expect_contains(error_of([&] { select(source, {}, &strange); }), "do not include 'ant'");
}

TEST(Selection, WithoutATestPartNoneCanBeAskedFor) {
  const MemorySource source("s", {{"a"}, {0}}, {{{"x"}, {0}}, at::zeros({1, 1, 4, 4}, at::kByte)},
                            {}, {});
  EXPECT_EQ(select(source, {}).test.size(), 0);
  expect_contains(error_of([&] { select(source, {.test_per_class = 1}); }), "has no test part");
}

TEST(ParseClasses, TakesLabelsRangesAndNames) {
  const ClassTable table{{"ant", "bee", "cow", "5"}, {0, 1, 2, 3}};
  using Positions = std::vector<std::int64_t>;
  EXPECT_EQ(parse_classes("0-2", table), (Positions{0, 1, 2}));
  EXPECT_EQ(parse_classes("cow,0", table), (Positions{0, 2}));
  EXPECT_EQ(parse_classes("5", table), (Positions{3}));  // the name wins
  expect_contains(error_of([&] { parse_classes("aent", table); }), "did you mean 'ant'");
  expect_contains(error_of([&] { parse_classes("7", table); }), "no class 7");
  expect_contains(error_of([&] { parse_classes("2-1", table); }), "runs backwards");
  expect_contains(error_of([&] { parse_classes("0-9", table); }), "no class 4");
  expect_contains(error_of([&] { parse_classes("", table); }), "names no class");
}

TEST(DataRequest, ComesBackFromJson) {
  DataRequest request{.spec = "npz:a",
                      .test_spec = "npz:b",
                      .source = {.image_size = 16, .channels = 1},
                      .selection = {}};
  request.selection = {
      .classes = "1-2", .per_class = 3, .test_per_class = 4, .validation_per_class = 5, .seed = 6};
  EXPECT_EQ(to_json(data_request_from_json(to_json(request))), to_json(request));
  expect_contains(error_of([] { data_request_from_json({{"seed", 1}}); }), "source");
}

TEST(DatasetDigest, ChangesWithEveryPartOfTheContent) {
  const Dataset dataset = select(made_source(), {.per_class = 2}).train;
  const std::string before = digest(dataset);
  EXPECT_TRUE(before.starts_with("blake2b:"));
  EXPECT_EQ(before.size(), 8U + 64U);
  const auto changed = [&](const std::function<void(Dataset&)>& change) {
    Dataset copy = dataset;
    copy.images = dataset.images.clone();
    copy.labels = dataset.labels.clone();
    change(copy);
    return digest(copy);
  };
  EXPECT_EQ(changed([](Dataset&) {}), before);
  EXPECT_NE(changed([](Dataset& copy) { copy.images[0][0][0][0] += 1; }), before);
  EXPECT_NE(changed([](Dataset& copy) { copy.labels[0] = 1 - copy.labels[0]; }), before);
  EXPECT_NE(changed([](Dataset& copy) { copy.ids[0] += "x"; }), before);
  EXPECT_NE(changed([](Dataset& copy) { std::swap(copy.ids[0], copy.ids[1]); }), before);
  EXPECT_NE(changed([](Dataset& copy) { copy.classes.names[0] += "x"; }), before);
  EXPECT_NE(changed([](Dataset& copy) { copy.classes.original_labels[0] += 1; }), before);
  EXPECT_NE(changed([](Dataset& copy) { copy.images = copy.images.view({-1, 1, 2, 8}); }), before);
  // The layout in memory is not content.
  EXPECT_EQ(changed([](Dataset& copy) {
              copy.images = copy.images.transpose(2, 3).contiguous().transpose(2, 3);
            }),
            before);
}

TEST(Normalization, GivesZeroMeanAndUnitDeviation) {
  const Dataset dataset = select(made_source(), {}).train;
  const Normalization normalization = measure_normalization(dataset);
  const at::Tensor inputs = network_inputs(dataset.images, normalization);
  EXPECT_NEAR(inputs.mean().item<double>(), 0, 1e-5);
  EXPECT_NEAR(inputs.std(false).item<double>(), 1, 1e-5);
  expect_contains(error_of([&] {
                    network_inputs(dataset.images.expand({-1, 3, -1, -1}), normalization);
                  }),
                  "for 1 channels, but the images have 3");
  const at::Tensor floats = at::rand({2, 1, 4, 4});
  EXPECT_TRUE(at::equal(network_inputs(floats, {}), floats));
  expect_contains(error_of([&] { network_inputs(floats, normalization); }), "used as they are");
}

}  // namespace
}  // namespace pumice::testing
