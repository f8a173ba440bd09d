#include "pumice/experiment/forecast.h"

#include <algorithm>

#include "pumice/core/memory.h"
#include "pumice/linearization/kernel_plan.h"
#include "pumice/linearization/linearization.h"

namespace pumice {

WorkForecast forecast_work(const Model& model, const Weights& weights, const at::Tensor& inputs,
                           std::int64_t batch_size, std::optional<std::int64_t> memory) {
  const Linearization linearization(model, weights, inputs);
  const MachineRates rates = measured_rates(weights.flat.scalar_type());
  const std::int64_t count = linearization.examples();
  const std::int64_t scalar = weights.flat.element_size();
  WorkForecast forecast;
  forecast.epoch_seconds = 3 * linearization.forward_flops() * static_cast<double>(count) /
                           (training_share_of_product_rate * rates.product);
  const KernelProblem problem{.left_examples = count,
                              .right_examples = count,
                              .symmetric = true,
                              .seeds = linearization.classes(),
                              .type = weights.flat.scalar_type(),
                              .scaled = false};
  const KernelPlan plan = plan_kernel(linearization.layers(), problem,
                                      memory.value_or(available_memory() / 2), {}, {}, rates);
  forecast.kernel_seconds = plan.forecast;
  forecast.kernel_bytes = plan.bytes;
  // Weights, gradient, velocity and a copy; what one batch keeps for its way back.
  forecast.training_bytes =
      4 * scalar * weights.flat.numel() +
      std::min(batch_size, count) * passing_bytes(linearization.layers(), 1, scalar);
  return forecast;
}

}  // namespace pumice
