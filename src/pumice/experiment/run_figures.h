// What the figures of a run are drawn from (docs/records.md).
#pragma once

#include <nlohmann/json.hpp>

#include "pumice/experiment/run_context.h"

namespace pumice {

// The supplement's options of the paper's method, each without noise: curvature identity or
// softmax, linearised at w(D) or w0, trapezium or not. Cost: two kernels.
nlohmann::json ablations(RunContext& context);

// Losses along w0 → w(D) and w(D) → w(Dr), and of the retained examples over the plane through the
// three; means over at most `landscape_examples` of each set.
constexpr std::int64_t landscape_examples = 100;
constexpr std::int64_t line_positions = 21;
constexpr std::int64_t surface_side = 17;
nlohmann::json landscape(RunContext& context);

// Paths of training on D and on Dr, seen in the plane of their two principal components.
nlohmann::json projection(RunContext& context);

}  // namespace pumice
