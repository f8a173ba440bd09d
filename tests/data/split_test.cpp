#include "pumice/data/split.h"

#include <gtest/gtest.h>

#include "command.h"
#include "data/made_files.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

Dataset made_dataset(const std::string& prefix, std::int64_t size) {
  Dataset dataset;
  for (std::int64_t i = 0; i < size; ++i) dataset.ids.push_back(prefix + std::to_string(i));
  dataset.images = at::zeros({size, 1, 2, 2}, at::kByte);
  dataset.labels = at::arange(size, at::kLong) % 2;
  dataset.classes = {{"cat", "dog"}, {4, 7}};
  return dataset;
}

TEST(Split, IsAPartitionInAscendingOrder) {
  const Split split = make_split(made_dataset("t", 5), made_dataset("e", 2), {"t3", "t0"});
  EXPECT_EQ(split.cohort, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(split.retain, (std::vector<std::int64_t>{1, 2, 4}));
}

TEST(Split, RefusesUnknownIdsWithTheirNumberAndTheFirstFew) {
  const std::string error = error_of([] {
    make_split(made_dataset("t", 5), made_dataset("e", 2), {"a", "t1", "b", "c", "d"});
  });
  expect_contains(error, "4 ids not among the 5 training examples");
  expect_contains(error, "'a', 'b', 'c', …");
}

TEST(Split, RefusesRepeatedAndEmptyCohorts) {
  const Dataset train = made_dataset("t", 5);
  const Dataset test = made_dataset("e", 2);
  expect_contains(error_of([&] {
                    make_split(train, test, {"t1", "t2", "t1"});
                  }),
                  "1 id repeated ('t1')");
  expect_contains(error_of([&] { make_split(train, test, {}); }), "cohort: empty");
}

TEST(Split, RefusesATestSetThatSharesExamplesWithTraining) {
  Dataset test = made_dataset("e", 3);
  test.ids[1] = "t4";
  expect_contains(error_of([&] { make_split(made_dataset("t", 5), test, {"t0"}); }),
                  "1 id also among the training examples ('t4')");
}

TEST(CohortFile, HoldsOneIdALine) {
  const TemporaryFolder folder;
  write_ids(folder / "cohort.txt", {"a/b c.png", "d"});
  EXPECT_EQ(content_of(folder / "cohort.txt"), "a/b c.png\nd\n");
  write_bytes(folder / "cohort.txt", "\r\na/b c.png\r\n\nd");
  EXPECT_EQ(read_ids(folder / "cohort.txt"), (std::vector<std::string>{"a/b c.png", "d"}));
  write_bytes(folder / "cohort.txt", "\n\n");
  expect_contains(error_of([&] { read_ids(folder / "cohort.txt"); }), "cohort.txt: no ids");
  expect_contains(error_of([&] { read_ids(folder / "none.txt"); }), "none.txt");
}

TEST(Cohort, IsDrawnFromOneClassReproducibly) {
  const Dataset train = made_dataset("t", 40);
  const std::vector<std::string> cohort = draw_cohort(train, "7", 6, 1);
  EXPECT_EQ(cohort.size(), 6U);
  for (const std::string& id : cohort) EXPECT_EQ(std::stoi(id.substr(1)) % 2, 1) << id;
  EXPECT_EQ(draw_cohort(train, "dog", 6, 1), cohort);
  EXPECT_NE(draw_cohort(train, "7", 6, 2), cohort);
  EXPECT_EQ(draw_cohort(train, "4", 20, 1).size(), 20U);
}

TEST(Cohort, RefusesTooManySeveralClassesAndUnknownOnes) {
  const Dataset train = made_dataset("t", 40);
  expect_contains(error_of([&] { draw_cohort(train, "7", 21, 1); }), "forget-count: 21");
  expect_contains(error_of([&] { draw_cohort(train, "7", 0, 1); }), "forget-count: 0");
  expect_contains(error_of([&] { draw_cohort(train, "4,7", 2, 1); }), "names 2 classes");
  expect_contains(error_of([&] { draw_cohort(train, "5", 2, 1); }), "no class 5");
}

}  // namespace
}  // namespace pumice::testing
