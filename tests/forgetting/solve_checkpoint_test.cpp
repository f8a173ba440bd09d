#include "pumice/forgetting/solve_checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "command.h"
#include "contracts/linear_operator_contract.h"
#include "forgetting_tasks.h"
#include "pumice/core/atomic_file.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests
using namespace std::chrono_literals;

class SolveCheckpointTest : public ::testing::Test {
 protected:
  SolveCheckpoint open(const std::string& binding = "b", std::chrono::milliseconds every = 0ms) {
    return SolveCheckpoint({.path = path_, .every = every, .binding = binding});
  }
  static SolveIterate iterate(const std::string& solve, std::int64_t iteration) {
    return {.solve = solve,
            .iteration = iteration,
            .solution = at::arange(5, at::kDouble) + static_cast<double>(iteration)};
  }
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "w.checkpoint";
};

TEST_F(SolveCheckpointTest, TheLastIterateOfEachSolveComesBack) {
  {
    SolveCheckpoint first = open();
    EXPECT_FALSE(first.restore("one"));
    first.save(iterate("one", 1));
    first.save(iterate("one", 2));
    first.save(iterate("two", 7));
  }
  SolveCheckpoint second = open();
  const std::optional<SolveIterate> one = second.restore("one");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->iteration, 2);
  EXPECT_TRUE(at::equal(one->solution, iterate("one", 2).solution));
  EXPECT_EQ(second.restore("two")->iteration, 7);
  EXPECT_FALSE(second.restore("three"));
  EXPECT_EQ(second.restored_iterations(), 9);
}

TEST_F(SolveCheckpointTest, ItIsTheOwnersAloneAndGoesAtTheEnd) {
  SolveCheckpoint checkpoint = open();
  checkpoint.save(iterate("one", 1));
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  checkpoint.remove();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  checkpoint.remove();  // what is not there is no trouble
}

TEST_F(SolveCheckpointTest, WhatAKilledRunLeftHalfWrittenIsRemoved) {
  const std::filesystem::path half = folder_ / ".w.checkpoint.4711.tmp", other = folder_ / ".w.x";
  write_file_atomically(half, "half of the cohort's solution");
  write_file_atomically(other, "somebody else's");
  open();
  EXPECT_FALSE(std::filesystem::exists(half));
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST_F(SolveCheckpointTest, AFolderThatIsStillToBeMadeIsMade) {
  path_ = folder_ / "new" / "w.checkpoint";
  open().save(iterate("one", 1));
  EXPECT_EQ(open().restore("one")->iteration, 1);
}

TEST_F(SolveCheckpointTest, ShortRunsLeaveNoFile) {
  SolveCheckpoint checkpoint = open("b", 1h);
  for (int i = 0; i < 10; ++i) checkpoint.save(iterate("one", i));
  EXPECT_FALSE(checkpoint.exists());
  EXPECT_EQ(checkpoint.restore("one")->iteration, 9);
}

TEST_F(SolveCheckpointTest, WithoutAPathNothingIsKept) {
  SolveCheckpoint checkpoint({.path = {}, .every = 0ms, .binding = {}});
  checkpoint.save(iterate("one", 1));
  EXPECT_FALSE(checkpoint.restore("one"));
  EXPECT_FALSE(checkpoint.exists());
}

TEST_F(SolveCheckpointTest, AnotherRequestsCheckpointIsRefusedAndKept) {
  open().save(iterate("one", 1));
  EXPECT_NE(refusal([&] { open("other"); }).find("is the checkpoint of another request"),
            std::string::npos);
  EXPECT_EQ(open().restore("one")->iteration, 1);
  SolveCheckpoint forced({.path = path_, .binding = "other", .ignore_existing = true});
  EXPECT_FALSE(forced.restore("one"));
}

TEST_F(SolveCheckpointTest, WhatIsNoCheckpointOrDamagedIsRefused) {
  std::ofstream(path_) << "no such thing";
  EXPECT_NE(refusal([&] { open(); }), "accepted");
  std::filesystem::remove(path_);
  open().save(iterate("one", 1));
  const std::string whole = content_of(path_);
  write_file_atomically(path_, whole.substr(0, whole.size() - 3));
  EXPECT_NE(refusal([&] { open(); }), "accepted");
  SolveIterate bad = iterate("one", 1);
  bad.solution[2] = std::nan("");
  std::filesystem::remove(path_);
  open().save(bad);
  EXPECT_NE(refusal([&] { open(); }).find("'one' is damaged"), std::string::npos);
}

// Gives up in the middle, as a process that is killed does.
class Killed final : public IterateStore {
 public:
  Killed(IterateStore& store, int saves) : store_(store), left_(saves) {}
  void save(const SolveIterate& iterate) override {
    store_.save(iterate);
    if (--left_ == 0) fail("killed");
  }
  std::optional<SolveIterate> restore(const std::string& solve) override {
    return store_.restore(solve);
  }

 private:
  IterateStore& store_;
  int left_;
};

TEST_F(SolveCheckpointTest, AKilledRunGoesOnToTheSameShift) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const LinearModel model{
      .curvature = Curvature::softmax, .decay = 0.1, .solver = Solver::matrix_free};
  const auto solve = [&](IterateStore* store) {
    return streamed_problem(request, {.relative_tolerance = 1e-10, .iterates = store})
        .direction(request.split.cohort, request.split.retain, model);
  };
  const auto expected = solve(nullptr);
  EXPECT_EQ(refusal([&] {
              SolveCheckpoint checkpoint = open();
              Killed killed(checkpoint, 5);
              solve(&killed);
            }),
            "killed");
  SolveCheckpoint again = open();
  const auto resumed = solve(&again);
  EXPECT_EQ(again.restored_iterations(), 5);
  EXPECT_LT(relative_distance(resumed.value, expected.value), 1e-8);
}

}  // namespace
}  // namespace pumice
