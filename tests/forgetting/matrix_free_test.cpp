#include <gtest/gtest.h>

#include <map>

#include "contracts/linear_operator_contract.h"
#include "forgetting_tasks.h"
#include "pumice/forgetting/forgetting_method.h"
#include "pumice/forgetting/solve_forecast.h"
#include "refusal.h"
#include "several_processes.h"

namespace pumice {
namespace {

using namespace testing;  // NOLINT: the small requests

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

double cosine(const at::Tensor& a, const at::Tensor& b) {
  return (a.dot(b) / (a.norm() * b.norm())).item<double>();
}

// The paper's own options aside: every method that solves, both curvatures, both precisions.
TEST(MatrixFree, BothSolversGiveTheSameShift) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const SmallRequest request = curved_request({0, 3, 7, 11}, type);
    for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
      for (const char* name : {"ntk", "consistent", "newton"}) {
        for (const std::int64_t preconditioner : {0, 6}) {
          ForgettingTask task = request.task();
          task.linear.preconditioner = preconditioner;
          SharedProblems shared(task);
          const auto shift = [&](Solver solver) {
            const ShiftResult result = method_named(name)
                                           .make({.curvature = curvature, .solver = solver})
                                           ->shift(task, shared);
            EXPECT_TRUE(result.summary.converged) << name << result.summary.explanation;
            EXPECT_EQ(*result.summary.solver, solver_name(solver));
            if (solver == Solver::matrix_free) {
              EXPECT_EQ(*result.summary.preconditioner, preconditioner);
              EXPECT_LE(*result.summary.error_bound, 1e-3);
              EXPECT_GT(*result.summary.error_bound, 0);
            }
            return (result.weights.flat - request.weights.flat).to(at::kDouble);
          };
          const at::Tensor dense = shift(Solver::dense), free = shift(Solver::matrix_free);
          EXPECT_GT(cosine(dense, free), 0.9999) << name;
          EXPECT_LT(relative_distance(free, dense), 0.01) << name;
        }
      }
    }
  }
}

TEST(MatrixFree, ThePreconditionerSavesIterationsAndChangesNothing) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const LinearModel model{.decay = 1e-3, .solver = Solver::matrix_free};
  const auto with = [&](std::int64_t examples) {
    return streamed_problem(request, {.relative_tolerance = 1e-10, .preconditioner = examples})
        .direction(request.split.cohort, request.split.retain, model);
  };
  const auto plain = with(0), preconditioned = with(12);
  EXPECT_LT(relative_distance(preconditioned.value, plain.value), 1e-6);
  EXPECT_LT(*preconditioned.report.iterations, *plain.report.iterations);
  EXPECT_EQ(*preconditioned.report.preconditioner, 12);
  EXPECT_EQ(*plain.report.preconditioner, 0);
}

TEST(MatrixFree, APreconditionerLargerThanTheSampleHasAKernelOfItsOwn) {
  const SmallRequest request = curved_request({0, 3, 7, 11}, at::kDouble, 120);
  const LinearModel model{.decay = 1e-3, .solver = Solver::matrix_free};
  const auto with = [&](std::int64_t examples) {
    const LinearProblem problem =
        streamed_problem(request, {.relative_tolerance = 1e-10, .preconditioner = examples});
    EXPECT_LT(problem.sample_size(), 350);
    return problem.direction(request.split.cohort, request.split.retain, model);
  };
  const auto plain = with(0), preconditioned = with(350);
  EXPECT_LT(relative_distance(preconditioned.value, plain.value), 1e-6);
  EXPECT_LT(*preconditioned.report.iterations, *plain.report.iterations);
  EXPECT_EQ(*preconditioned.report.preconditioner, 350);
}

// Three of 24 examples lie between two classes, the others are certain: JᵀHJ is theirs alone.
TEST(MatrixFree, ThePreconditionerIsMadeOfTheMostCurvedExamples) {
  SmallRequest request = linear_request({0});
  for (const std::int64_t between : {4, 9, 20}) {
    const at::Tensor a = request.data.images[between + 1].to(at::kDouble),
                     b = request.data.images[between + 2].to(at::kDouble);
    request.data.images[between].copy_(((a + b) / 2).round());
  }
  request.loss = Loss::cross_entropy;
  request.weights.flat = 60 * exact_training(linear_request({0}), everything(24));
  const LinearModel model{
      .curvature = Curvature::softmax, .decay = 1e-3, .solver = Solver::matrix_free};
  const auto with = [&](std::int64_t examples) {
    return streamed_problem(request, {.error_tolerance = 1e-9, .preconditioner = examples})
        .wlin(everything(24), model);
  };
  const auto plain = with(0), two = with(2), three = with(3);
  EXPECT_GT(*plain.report.iterations, 3);
  EXPECT_GT(*two.report.iterations, 1);
  EXPECT_LE(*three.report.iterations, 1);
  EXPECT_LT(relative_distance(three.value, plain.value), 1e-7);
}

TEST(MatrixFree, APreconditionerThatNobodyAskedForIsAFifthOfAllAtTheMost) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const LinearProblem problem = streamed_problem(request);
  for (const double decay : {0.1, 1e-3, 1e-5}) {
    EXPECT_LE(problem.preconditioner_size({.decay = decay, .solver = Solver::matrix_free}, 24), 4);
  }
}

// The sample is everything here: what is estimated is what happens.
TEST(MatrixFree, TheEstimateFromTheKernelCountsTheIterationsOfTheSolve) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
    for (const std::int64_t preconditioner : {0, 8}) {
      const LinearProblem problem = streamed_problem(request, {.preconditioner = preconditioner});
      const LinearModel model{.curvature = curvature, .decay = 1e-2, .solver = Solver::matrix_free};
      ASSERT_EQ(problem.sample_size(), 24);
      const auto solved = problem.wlin(everything(24), model);
      const IterationEstimate estimate =
          estimate_iterations(problem.sampled(model, {}), 24, preconditioner);
      EXPECT_NEAR(estimate.expected, static_cast<double>(*solved.report.iterations), 1.5);
      const IterationEstimate of_step = estimate_iterations(
          problem.sampled(model, {.what = SolvedFor::step}), 24, preconditioner);
      const auto steps =
          static_cast<double>(*problem.step(everything(24), model).report.iterations);
      EXPECT_NEAR(of_step.expected, steps, std::max(1.5, 0.05 * steps));
      // The sample's own cohort is another one, and of the right-hand side only ρ is estimated.
      const LinearProblem::Direction direction =
          problem.direction(request.split.cohort, request.split.retain, model);
      double both = 0;
      for (const SolvedFor what : {SolvedFor::minimum, SolvedFor::direction}) {
        const SampledProblem sampled = problem.sampled(model, {.what = what, .cohort = 4});
        both += estimate_iterations(sampled, 24, preconditioner).expected;
      }
      const auto iterations = static_cast<double>(*direction.report.iterations);
      EXPECT_GT(both, iterations / 1.5);
      EXPECT_LT(both, iterations * 1.5);
      const IterationEstimate more =
          estimate_iterations(problem.sampled(model, {}), 24000, preconditioner);
      EXPECT_LE(more.low, more.expected);
      EXPECT_LE(more.expected, more.high);
    }
  }
}

TEST(MatrixFree, AnEstimateForMoreExamplesGoesOnAsFromHalfTheSampleToAllOfIt) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  constexpr std::int64_t times = 4;
  int falls = 0, grows = 0;
  for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
    for (const std::int64_t preconditioner : {0, 8}) {
      for (const double decay : {1e-1, 1e-2, 1e-4}) {
        const LinearProblem problem = streamed_problem(request, {.preconditioner = preconditioner});
        const SampledProblem sampled = problem.sampled(
            {.curvature = curvature, .decay = decay, .solver = Solver::matrix_free}, {});
        const auto now = static_cast<double>(iterations_on_sample(sampled, 24, preconditioner));
        const auto before =
            static_cast<double>(iterations_on_sample(sampled, 12, preconditioner / 2));
        const IterationEstimate estimate =
            estimate_iterations(sampled, 24 * times, preconditioner * times);
        double power = std::clamp(std::log2(now / before), -0.5, 0.5);
        const bool most_curved = preconditioner > 0 && curvature == Curvature::softmax;
        if (power < 0 && most_curved) power *= 2;
        const double end = now * std::pow(times, power);
        EXPECT_NEAR(estimate.low, std::max(1.0, std::min(now, end)), 1e-9);
        EXPECT_NEAR(estimate.high, std::max(now, end), 1e-9);
        EXPECT_NEAR(estimate.expected, std::max(1.0, std::sqrt(now * end)), 1e-9);
        falls += power < 0 && most_curved;
        grows += power > 0;
      }
    }
  }
  EXPECT_GT(falls, 0);
  EXPECT_GT(grows, 0);
}

TEST(MatrixFree, AShareOfLessThanOneExampleSaysNothingOfHowIterationsGoOn) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const LinearProblem problem = streamed_problem(request, {.preconditioner = 1});
  const SampledProblem sampled = problem.sampled(
      {.curvature = Curvature::softmax, .decay = 1e-2, .solver = Solver::matrix_free}, {});
  // One of 24, none of 12: 24/30 and 12/30 are rounded.
  const IterationEstimate estimate = estimate_iterations(sampled, 24 * 30, 24);
  EXPECT_EQ(estimate.low, static_cast<double>(iterations_on_sample(sampled, 24, 1)));
  EXPECT_EQ(estimate.high, estimate.low);
}

// A model that is linear in its weights and was trained to the end: wlin(D) is how far it moved.
TEST(MatrixFree, ASolveBeginsWhereTrainingEndedIfThatIsNear) {
  const SmallRequest request = linear_request({0, 3});
  const LinearModel model{.decay = request.weight_decay, .solver = Solver::matrix_free};
  const LinearProblemOptions options{.error_tolerance = 1e-8, .preconditioner = 0};
  const LinearProblem trained = streamed_problem(request, options);
  const auto solved = trained.wlin(everything(24), model);
  EXPECT_EQ(*solved.report.iterations, 0);
  EXPECT_LT(relative_distance(solved.value, trained.displacement()), 1e-12);
  // The paper's linear model does not know the centre of the decay.
  LinearModel paper = model;
  paper.displaced = false;
  EXPECT_GT(*trained.wlin(everything(24), paper).report.iterations, 0);
  // Where the minimum of a linear model is does not depend on where it is linearised.
  SmallRequest other_way = request;
  other_way.weights.flat = 2 * request.start - request.weights.flat;
  const LinearProblem away = streamed_problem(other_way, options);
  const auto from_zero = away.wlin(everything(24), model);
  EXPECT_GT(*from_zero.report.iterations, 0);
  EXPECT_LT(relative_distance(from_zero.value, trained.displacement()), 1e-7);
}

// From a converged model a step is little beside how far training moved: it must not be taken for
// the error of a solve.
TEST(MatrixFree, ANewtonStepFromWhereTrainingEndedIsNotLost) {
  SmallRequest request = linear_request({5});
  // The cohort is fitted almost exactly: forgetting it moves hardly anything.
  const at::Tensor row = at::tensor({5}, at::kLong);
  request.data.images.index_put_({row}, request.data.images[8].clone());
  request.weights.flat = exact_training(request, everything(24));
  const auto step = [&](Solver solver) {
    return streamed_problem(request, {.preconditioner = 0})
        .step(request.split.retain, {.decay = request.weight_decay, .solver = solver});
  };
  const auto dense = step(Solver::dense), free = step(Solver::matrix_free);
  EXPECT_GT(*free.report.iterations, 0);
  EXPECT_TRUE(*free.report.near_enough);
  EXPECT_LT(relative_distance(free.value, dense.value), 0.01);
  const at::Tensor u = request.weights.flat - request.start;
  EXPECT_LT((dense.value.norm() / u.norm()).item<double>(), 0.2);
  const ForgettingTask task = request.task();
  SharedProblems shared(task);
  const ShiftResult moved =
      method_named("newton").make({.solver = Solver::matrix_free})->shift(task, shared);
  EXPECT_LT(relative_distance(moved.weights.flat - request.weights.flat, dense.value), 0.01);
}

// What is chosen for is the solve without the cohort, which begins at zero also where training
// ended.
TEST(MatrixFree, WhereTrainingEndedAPreconditionerIsStillWorthItsWhile) {
  SmallRequest request = linear_request({0, 3});
  request.data = blob_dataset(40);
  // Twelve pictures in all proportions: a fifth of the examples spans what all others do.
  torch::manual_seed(5);
  const at::Tensor parts =
      at::rand({120, 12}, at::kDouble) * at::logspace(0, -1, 12, 10, at::kDouble);
  request.data.images = at::matmul(parts / parts.sum(1, true),
                                   request.data.images.slice(0, 0, 12).flatten(1).to(at::kDouble))
                            .view_as(request.data.images)
                            .round()
                            .to(at::kByte);
  request.split = split_off(120, {0, 3});
  request.weight_decay = 1e-3;
  request.weights.flat = exact_training(request, everything(120));
  const LinearModel model{.decay = request.weight_decay, .solver = Solver::matrix_free};
  EXPECT_GT(streamed_problem(request).preconditioner_size(model, 120), 0);
}

TEST(MatrixFree, MemoryDecidesTheBatchAndTheSolver) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  const LinearProblem roomy = streamed_problem(request, {.memory = std::int64_t{1} << 30});
  EXPECT_EQ(roomy.stream().batch_size(), 64);
  const std::int64_t one = roomy.stream().bytes_per_example(), fixed = roomy.fixed_bytes();
  const LinearProblem narrow = streamed_problem(request, {.memory = fixed + 3 * one});
  EXPECT_EQ(narrow.stream().batch_size(), 3);
  const LinearModel model{.decay = 0.1, .solver = Solver::automatic};
  const SolverChoice choice = choose_solver(narrow, model, {.cohort = 4});
  EXPECT_LE(choice.matrix_free.bytes, fixed + 3 * one);
  EXPECT_EQ(choice.solver == Solver::dense,
            choice.dense.fits && choice.dense.seconds <= choice.matrix_free.seconds);
  const LinearProblem too_small = streamed_problem(request, {.memory = fixed});
  EXPECT_NE(refusal([&] {
              too_small.wlin({0, 1}, softmax_model);
            }).find("needs at least"),
            std::string::npos);
}

// More examples than the sample holds: the choice is a real one.
TEST(MatrixFree, WhereTheKernelDoesNotFitAutoGoesWithoutItToTheSameShift) {
  const SmallRequest request = curved_request({0, 3, 7, 11}, at::kDouble, 120);
  for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
    for (const char* name : {"ntk", "consistent"}) {
      const auto shift = [&](Solver solver, std::int64_t memory) {
        ForgettingTask task = request.task();
        task.linear.memory = memory;
        SharedProblems shared(task);
        return method_named(name)
            .make({.curvature = curvature, .solver = solver})
            ->shift(task, shared);
      };
      // Dense: five times (360·3)²·8 bytes.
      const ShiftResult free = shift(Solver::automatic, 44 << 20);
      EXPECT_EQ(*free.summary.solver, "matrix-free") << name;
      EXPECT_EQ(free.summary.solver_reason.find("dense needs "), 0U) << free.summary.solver_reason;
      const ShiftResult dense = shift(Solver::dense, std::int64_t{1} << 30);
      EXPECT_GT(cosine(dense.weights.flat - request.weights.flat,
                       free.weights.flat - request.weights.flat),
                0.9999)
          << name;
      const ShiftResult roomy = shift(Solver::automatic, std::int64_t{1} << 30);
      EXPECT_EQ(roomy.summary.solver_reason.find("dense about "), 0U)
          << roomy.summary.solver_reason;
    }
  }
}

TEST(MatrixFree, FourProcessesGiveTheShiftOfOne) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  // Rounding moves the iterates on their way (by 1e-7 here), not where they end.
  const LinearProblemOptions options{.error_tolerance = 1e-8, .preconditioner = 6};
  const LinearProblem alone = streamed_problem(request, options);
  const auto one = alone.direction(request.split.cohort, request.split.retain, softmax_model);
  TakingTurns processes(4);
  std::vector<at::Tensor> found(4);
  processes.run([&](const Shard& shard, const TakingTurns::Sum& sum) {
    LinearProblemOptions own = options;
    own.shard = shard;
    own.sum_over_processes = sum;
    const LinearProblem problem = streamed_problem(request, own);
    EXPECT_LT(relative_distance(problem.sample().theta, alone.sample().theta), 1e-12);
    const auto direction =
        problem.direction(request.split.cohort, request.split.retain, softmax_model);
    EXPECT_NEAR(static_cast<double>(*direction.report.iterations),
                static_cast<double>(*one.report.iterations), 2);
    found[static_cast<std::size_t>(shard.index)] = direction.value;
  });
  EXPECT_GT(processes.sums(), 10);
  for (const at::Tensor& value : found) {
    EXPECT_LT(relative_distance(value, one.value), 1e-7);
    EXPECT_TRUE(at::equal(value, found[0]));
  }
}

TEST(MatrixFree, AKilledSolveGoesOnFromItsLastIterate) {
  const SmallRequest request = curved_request({0, 3, 7, 11});
  KeptIterates whole, store;
  const auto expected = streamed_problem(request, {.relative_tolerance = 1e-10, .iterates = &whole})
                            .direction(request.split.cohort, request.split.retain, softmax_model);
  store.give_up_after = whole.saves - 3;
  const LinearProblemOptions options{.relative_tolerance = 1e-10, .iterates = &store};
  EXPECT_EQ(refusal([&] {
              streamed_problem(request, options)
                  .direction(request.split.cohort, request.split.retain, softmax_model);
            }),
            "killed");
  std::int64_t iterations = 0;
  LinearProblemOptions again = options;
  again.iterated = [&](const SolveProgress&) { ++iterations; };
  const auto resumed = streamed_problem(request, again)
                           .direction(request.split.cohort, request.split.retain, softmax_model);
  EXPECT_EQ(store.restored, 2);
  EXPECT_LT(iterations, *expected.report.iterations);
  EXPECT_LT(relative_distance(resumed.value, expected.value), 1e-8);
  // Another ridge is another solve: nothing of the first may be taken for it.
  LinearModel other = softmax_model;
  other.decay = 0.2;
  streamed_problem(request, options).wlin(request.split.retain, other);
  EXPECT_EQ(store.restored, 2);
}

TEST(MatrixFree, AShardWithoutAWayToSumIsRefused) {
  const SmallRequest request = curved_request({0});
  EXPECT_EQ(refusal([&] { streamed_problem(request, {.shard = {.index = 1, .count = 2}}); }),
            "shard: one of 2, must have a way to sum over processes");
  EXPECT_EQ(refusal([&] { streamed_problem(request, {.shard = {.index = 2, .count = 2}}); }),
            "shard: 2 of 2, must be 0 … count-1");
}

}  // namespace
}  // namespace pumice
