#include "pumice/experiment/step_store.h"

#include <gtest/gtest.h>

#include "pumice/core/atomic_file.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::refusal;
using testing::TemporaryFolder;

TEST(StepStore, AStepIsFoundByItsKeyOnceItIsFinished) {
  const TemporaryFolder folder;
  const StepStore store(folder.path());
  const StepKey key{.kind = "audit", .depends = {{"seed", 1}, {"rate", 0.1}}};
  EXPECT_FALSE(store.find(key));
  store.prepare(key);
  EXPECT_FALSE(store.find(key));
  store.finish(key, {.content = {{"epochs", 3}}, .seconds = 1.5});
  ASSERT_TRUE(store.find(key));
  EXPECT_EQ(store.find(key)->content.at("epochs"), 3);
  EXPECT_EQ(store.find(key)->seconds, 1.5);
}

TEST(StepStore, AnotherDependencyIsAnotherStep) {
  const TemporaryFolder folder;
  const StepStore store(folder.path());
  store.finish({.kind = "audit", .depends = {{"seed", 1}}}, {.content = 1, .seconds = 0});
  EXPECT_FALSE(store.find({.kind = "audit", .depends = {{"seed", 2}}}));
  EXPECT_FALSE(store.find({.kind = "scrub", .depends = {{"seed", 1}}}));
}

TEST(StepStore, ADamagedResultIsAnErrorNotASilentRepetition) {
  const TemporaryFolder folder;
  const StepStore store(folder.path());
  const StepKey key{.kind = "audit", .depends = 1};
  store.finish(key, {.content = 1, .seconds = 0});
  write_file_atomically(store.folder_of(key) / "step.json", "{\"digest\"");
  EXPECT_NE(refusal([&] { store.find(key); }).find("is damaged or of another step"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
