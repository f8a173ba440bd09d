#include "pumice/forgetting/scrub.h"

#include <chrono>

#include "pumice/linearization/linearization.h"

namespace pumice {

at::Tensor retained_fisher(const ForgettingTask& task, const Weights& mean) {
  const Dataset retained = subset(task.train, task.split.retain);
  const Linearization linearization(task.model, mean,
                                    network_inputs(retained.images, task.normalization));
  return linearization.fisher_diagonal(
      {.memory = task.linear.memory, .progress = [&](double share) {
         if (task.linear.progress) {
           task.linear.progress("Fisher information", share);
         }
       }});
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
