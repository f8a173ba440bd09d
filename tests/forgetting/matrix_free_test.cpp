#include <gtest/gtest.h>

#include <map>

#include "contracts/linear_operator_contract.h"
#include "forgetting_tasks.h"
#include "pumice/forgetting/forgetting_method.h"
#include "refusal.h"
#include "several_processes.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests

LinearProblem problem_of(const SmallRequest& request, LinearProblemOptions options = {}) {
  return {
      *request.model,      request.weights, InputSource(request.data.images, request.normalization),
      request.data.labels, request.start,   request.loss,
      std::move(options)};
}

const LinearModel softmax_model{
    .curvature = Curvature::softmax, .decay = 0.1, .solver = Solver::matrix_free};

// Iterates in memory.
class KeptIterates final : public IterateStore {
 public:
  void save(const SolveIterate& iterate) override {
    kept[iterate.solve] = {iterate.solve, iterate.iteration, iterate.solution.clone()};
    if (++saves == give_up_after) fail("killed");
  }
  std::optional<SolveIterate> restore(const std::string& solve) override {
    const auto found = kept.find(solve);
    if (found == kept.end()) return {};
    ++restored;
    return found->second;
  }

  std::map<std::string, SolveIterate> kept;
  int saves = 0, restored = 0, give_up_after = -1;
};

TEST(MatrixFree, FourProcessesGiveTheShiftOfOne) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const auto one =
      problem_of(request).direction(request.split.cohort, request.split.retain, softmax_model);
  TakingTurns processes(4);
  std::vector<at::Tensor> found(4);
  processes.run([&](const Shard& shard, const TakingTurns::Sum& sum) {
    const LinearProblem problem = problem_of(request, {.shard = shard, .sum_over_processes = sum});
    found[static_cast<std::size_t>(shard.index)] =
        problem.direction(request.split.cohort, request.split.retain, softmax_model).value;
  });
  EXPECT_GT(processes.sums(), 10);
  for (const at::Tensor& value : found) {
    EXPECT_LT(relative_distance(value, one.value), 1e-9);
    EXPECT_TRUE(at::equal(value, found[0]));
  }
}

TEST(MatrixFree, AKilledSolveGoesOnFromItsLastIterate) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  KeptIterates whole, store;
  const auto expected = problem_of(request, {.relative_tolerance = 1e-10, .iterates = &whole})
                            .direction(request.split.cohort, request.split.retain, softmax_model);
  store.give_up_after = whole.saves - 3;
  const LinearProblemOptions options{.relative_tolerance = 1e-10, .iterates = &store};
  EXPECT_EQ(refusal([&] {
              problem_of(request, options)
                  .direction(request.split.cohort, request.split.retain, softmax_model);
            }),
            "killed");
  std::int64_t iterations = 0;
  LinearProblemOptions again = options;
  again.iterated = [&](const SolveProgress&) { ++iterations; };
  const auto resumed = problem_of(request, again)
                           .direction(request.split.cohort, request.split.retain, softmax_model);
  EXPECT_EQ(store.restored, 2);
  EXPECT_LT(iterations, *expected.report.iterations);
  EXPECT_LT(relative_distance(resumed.value, expected.value), 1e-8);
  // Another ridge is another solve: nothing of the first may be taken for it.
  LinearModel other = softmax_model;
  other.decay = 0.2;
  problem_of(request, options).wlin(request.split.retain, other);
  EXPECT_EQ(store.restored, 2);
}

TEST(MatrixFree, AShardWithoutAWayToSumIsRefused) {
  const SmallRequest request = curved_request({0});
  EXPECT_EQ(refusal([&] { problem_of(request, {.shard = {.index = 1, .count = 2}}); }),
            "shard: one of 2, must have a way to sum over processes");
  EXPECT_EQ(refusal([&] { problem_of(request, {.shard = {.index = 2, .count = 2}}); }),
            "shard: 2 of 2, must be 0 … count-1");
}

}  // namespace
}  // namespace pumice
