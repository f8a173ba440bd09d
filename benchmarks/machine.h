// What a benchmark says about where it ran, and the yardstick it measures itself against.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

namespace pumice::benchmark {

// Processor, cores, threads, memory, versions, revision.
nlohmann::json machine_description();

// FLOP/s of the BLAS's single-precision product of two 2,048×2,048 matrices: the best of `repeats`,
// since the yardstick is what the machine can do.
double sgemm_rate(int repeats = 7);

// Seconds of one call: the median of `repeats`, after one call to warm up.
double median_seconds(const std::function<void()>& work, int repeats);

}  // namespace pumice::benchmark
