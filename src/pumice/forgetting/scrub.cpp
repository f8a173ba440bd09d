#include "pumice/forgetting/scrub.h"

#include <algorithm>
#include <chrono>

#include "pumice/linearization/linearization.h"

namespace pumice {

at::Tensor retained_fisher(const ForgettingTask& task, const Weights& mean) {
  // A block at a time: the inputs of all examples would take four times the memory of the images.
  constexpr std::int64_t at_once = 1024;
  const InputSource inputs(task.train.images, task.normalization);
  const at::Tensor retained = at::tensor(task.split.retain, at::kLong);
  const Linearization first(
      task.model, mean,
      inputs.at(retained.narrow(0, 0, std::min<std::int64_t>(3, retained.numel()))));
  const auto all = static_cast<double>(retained.numel());
  at::Tensor sum = at::zeros({mean.flat.numel()}, at::kDouble);
  double done = 0;
  for (const at::Tensor& block : retained.split(at_once)) {
    const auto own = static_cast<double>(block.numel());
    const at::Tensor part =
        first.with_inputs(inputs.at(block))
            .fisher_diagonal({.memory = task.linear.memory, .progress = [&](double share) {
                                if (task.linear.progress) {
                                  task.linear.progress("Fisher information",
                                                       (done + own * share) / all);
                                }
                              }});
    sum.add_(part, own / all);
    done += own;
  }
  return sum;
}

WeightDistribution with_noise(const ForgettingTask& task, const NoiseOptions& options,
                              const Weights& mean) {
  WeightDistribution distribution{.mean = mean, .variance = {}};
  if (options.scale == 0) return distribution;
  distribution.variance =
      noise_variance(retained_fisher(task, mean), *mean.layout, task.train.classes.size(), options);
  return distribution;
}

Scrubbed scrub(const ForgettingTask& task, SharedProblems& shared, const ScrubOptions& options,
               const std::vector<Weights>& references) {
  const auto method = method_named(options.method).make(options.options);
  return release(task, method->shift(task, shared), options, references);
}

Scrubbed release(const ForgettingTask& task, const ShiftResult& shifted,
                 const ScrubOptions& options, const std::vector<Weights>& references) {
  Scrubbed result{.distribution = {}, .sample = {}, .summary = shifted.summary};
  result.summary.method = options.method;
  if (!shifted.weights.flat.defined()) return result;
  const auto begin = std::chrono::steady_clock::now();
  result.distribution = with_noise(task, options.noise, shifted.weights);
  if (!result.distribution.deterministic()) {
    result.summary.noise = summarize(options.noise, result.distribution);
    result.summary.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // One forward pass and, for each class, one backward pass and the rows of the Jacobian.
    const auto classes = static_cast<double>(task.train.classes.size());
    result.summary.epoch_equivalents += (1 + 2 * classes) / 3 *
                                        static_cast<double>(task.split.retain.size()) /
                                        static_cast<double>(task.train.size());
  }
  result.sample = draw(result.distribution, options.noise.seed);
  if (!references.empty()) {
    result.summary.reference = compare(task.weights, shifted.weights, references);
  }
  return result;
}

}  // namespace pumice
