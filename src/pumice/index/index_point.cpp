#include "pumice/index/index_point.h"

#include <chrono>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/forgetting/scale_rule.h"

namespace pumice {
namespace {

using Clock = std::chrono::steady_clock;

void fill_rows(IndexContent& content, const Dataset& train) {
  content.ids.clear();
  content.pixels.clear();
  for (std::int64_t i = 0; i < train.size(); ++i) {
    content.ids.push_back(id_digest(content.terms.key, train.ids[static_cast<std::size_t>(i)]));
    content.pixels.push_back(pixels_digest(content.terms.key, train.images[i]));
  }
  content.labels = train.labels.contiguous();
}

}  // namespace

DualSolution solve_index(const IndexContent& content) {
  return solve_dual({content.kernel, {}},
                    content.terms.ridge * static_cast<double>(content.examples()),
                    content.residual - content.displaced);
}

void check_index_memory(std::int64_t examples, std::int64_t classes,
                        const std::optional<std::int64_t>& memory) {
  const double needed = index_bytes(examples, classes);
  const double allowed =
      memory ? static_cast<double>(*memory) : static_cast<double>(available_memory()) / 2;
  if (needed <= allowed) return;
  fail("memory: a request to an index of ", examples, " examples with ", classes, " classes takes ",
       bytes_text(needed), ", allowed are ", bytes_text(allowed),
       memory ? " (--memory)" : " (half of what is free; --memory sets it)",
       "; give it more, or forget without an index, where a solver needs no kernel");
}

IndexReport linearize(const ForgettingTask& task, SharedProblems& shared, IndexContent& content) {
  const auto begin = Clock::now();
  check_index_memory(task.train.size(), task.train.classes.size(), task.linear.memory);
  const LinearProblem& problem = shared.at_weights();
  const at::Tensor& theta = problem.kernel().theta;
  // Its halves were summed in different orders; one of them is stored.
  content.kernel = (theta + theta.t()).mul_(0.5);
  content.residual = problem.residual();
  content.displaced = problem.displaced();
  content.centre = task.centre.to(task.weights.flat.scalar_type()).contiguous();
  fill_rows(content, task.train);
  const DualSolution solution = solve_index(content);
  if (!solution.succeeded()) fail("index: ", solution.factorization.brief());
  if (!(solution.relative_residual < 1e-6)) {
    fail("index: the linear system is solved to a relative residual of ",
         solution.relative_residual, " only, must be < 1e-6; a larger --ridge helps");
  }
  content.wlin = problem.pull(-solution.coefficients);
  if (content.terms.scale_rule != given_scale) {
    const ScaleChoice choice = scale_without_examples(problem.displacement(), content.wlin);
    content.terms.scale = choice.scale;
    content.terms.scale_rule = choice.rule;
  }
  content.terms.point_examples = task.train.size();
  return {problem.kernel().summary.brief(), solution.relative_residual,
          std::chrono::duration<double>(Clock::now() - begin).count()};
}

}  // namespace pumice
