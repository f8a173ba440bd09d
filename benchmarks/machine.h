// What a benchmark says about where it ran, and the yardstick it measures itself against.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pumice::benchmark {

// First in main(): what the tool does before any work (BLAS kernels, for which the program may
// start itself again; freed memory is kept; all cores), so that what is measured is what users get.
void start_like_the_tool(char** arguments);

// Processor, cores, threads, memory, versions, revision.
nlohmann::json machine_description();

// FLOP/s of the BLAS's single-precision product of two 2,048×2,048 matrices: the best of `repeats`,
// since the yardstick is what the machine can do.
double sgemm_rate(int repeats = 7);

double seconds_of(const std::function<void()>& work);
// Seconds of one call: the median of `repeats`, after one call to warm up.
double median_seconds(const std::function<void()>& work, int repeats);

// A number of /proc/self/status ("VmRSS", "VmHWM": now and at most), in bytes.
double bytes_of_this_process(const std::string& key);

// Runs a command (a case in a process of its own, so that its peak memory is its own) and reads the
// JSON that it prints. Throws Error if it fails.
nlohmann::json output_of(const std::string& command);

// Slope of log seconds against log N, of pairs (N, seconds).
double fitted_exponent(const std::vector<std::pair<double, double>>& points);

}  // namespace pumice::benchmark
