#include <gtest/gtest.h>

#include "contracts/linear_operator_contract.h"
#include "forgetting_tasks.h"
#include "pumice/linearization/kernel_tiles.h"
#include "refusal.h"
#include "several_processes.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests

TEST(KernelTiles, CutsGiveEveryPartTheSameShareOfTheTriangle) {
  const std::vector<std::int64_t> cuts = triangle_cuts(10000, 7);
  ASSERT_EQ(cuts.size(), 8U);
  EXPECT_EQ(cuts.front(), 0);
  EXPECT_EQ(cuts.back(), 10000);
  for (std::size_t i = 0; i < 7; ++i) {
    const double area = static_cast<double>(cuts[i + 1] * cuts[i + 1] - cuts[i] * cuts[i]) / 1e8;
    EXPECT_NEAR(area, 1.0 / 7, 1e-3) << i;
  }
  // More parts than examples: some have none, nobody is lost.
  const std::vector<std::int64_t> few = triangle_cuts(2, 5);
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end()));
  EXPECT_EQ(few.back(), 2);
  EXPECT_EQ(triangle_cuts(5, 1), (std::vector<std::int64_t>{0, 5}));
}

TEST(KernelTiles, RowsAreThoseOfTheDenseProduct) {
  const SmallRequest request = curved_request({0});
  const ExampleStream stream(*request.model, request.weights,
                             InputSource(request.data.images, request.normalization));
  const at::Tensor jacobian = dense_jacobian(*request.model, request.weights, request.inputs());
  const at::Tensor theta = jacobian.mm(jacobian.t());
  for (const auto& [begin, end] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 5}, {5, 6}, {6, 24}, {7, 7}}) {
    double last = 0;
    const Kernel rows = kernel_rows(stream, begin, end, {.progress = [&](double share) {
                                      EXPECT_GE(share, last);
                                      last = share;
                                    }});
    const at::Tensor expected = theta.narrow(0, begin * 3, (end - begin) * 3).narrow(1, 0, end * 3);
    ASSERT_EQ(rows.theta.sizes(), expected.sizes());
    if (begin == end) continue;
    EXPECT_LT(relative_distance(rows.theta, expected), 1e-12) << begin;
    EXPECT_LE(last, 1);
  }
}

class DenseOnProcesses : public ::testing::TestWithParam<Curvature> {};

TEST_P(DenseOnProcesses, FourGiveTheShiftOfOne) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const LinearModel model{.curvature = GetParam(), .decay = 0.1, .solver = Solver::dense};
  const LinearProblem alone = streamed_problem(request);
  const auto one = alone.direction(request.split.cohort, request.split.retain, model);
  TakingTurns processes(4);
  std::vector<at::Tensor> found(4), tiles(4);
  std::vector<double> flops(4);
  processes.run([&](const Shard& shard, const TakingTurns::Sum& sum) {
    const auto index = static_cast<std::size_t>(shard.index);
    const GatherTiles gather = [&, sum](const at::Tensor& own,
                                        const std::vector<at::Tensor>& places) {
      tiles[index] = own;
      at::Tensor all_here = at::zeros({1}, at::kDouble);
      sum(all_here);
      for (std::size_t i = 0; i < places.size(); ++i) at::Tensor(places[i]).copy_(tiles[i]);
    };
    const LinearProblem problem = streamed_problem(
        request, {.shard = shard, .sum_over_processes = sum, .gather_tiles = gather});
    const auto direction = problem.direction(request.split.cohort, request.split.retain, model);
    found[index] = direction.value;
    EXPECT_TRUE(direction.report.converged);
    EXPECT_NEAR(*direction.report.condition_estimate, *one.report.condition_estimate, 1e-6);
    EXPECT_EQ(problem.kernel().theta.defined(), shard.index == 0);
    flops[index] = problem.flops();
  });
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_LT(relative_distance(found[i], one.value), 1e-10);
    EXPECT_TRUE(at::equal(found[i], found[0]));
    EXPECT_EQ(flops[i], alone.flops());
  }
}

INSTANTIATE_TEST_SUITE_P(BothCurvatures, DenseOnProcesses,
                         ::testing::Values(Curvature::identity, Curvature::softmax),
                         [](const auto& which) { return curvature_name(which.param); });

TEST(KernelTiles, WithoutAWayToGatherTheKernelIsRefused) {
  const SmallRequest request = curved_request({0});
  const LinearProblem problem = streamed_problem(
      request, {.shard = {.index = 0, .count = 2}, .sum_over_processes = [](at::Tensor&) {}});
  EXPECT_EQ(refusal([&] { problem.kernel(); }),
            "kernel: one of 2 processes, must have a way to gather it");
}

}  // namespace
}  // namespace pumice
