#include "machine.h"

#include <ATen/Parallel.h>
#include <cblas.h>
#include <sys/sysinfo.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/core/revision.h"
#include "pumice/linalg/blas_kernels.h"
#include "pumice/linalg/threads.h"

namespace pumice::benchmark {
namespace {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

void start_like_the_tool(char** arguments) {
  restart_with_better_blas_kernels(arguments);
  keep_freed_memory();
  set_threads(available_cores());
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

nlohmann::json machine_description() {
  struct sysinfo memory {};
  ::sysinfo(&memory);
  return {{"processor", processor_name()},
          {"cores", available_cores()},
          {"threads", at::get_num_threads()},
          {"memory_gib", static_cast<double>(memory.totalram) * memory.mem_unit / (1 << 30)},
          {"libtorch", TORCH_VERSION},
          {"openblas", openblas_get_config()},
          {"openblas_kernels", blas_kernels()},
          {"pumice", version()},
          {"revision", revision()}};
}

double sgemm_rate(int repeats) {
  const int n = 2048;
  std::vector<float> a(static_cast<std::size_t>(n) * n, 0.5F);
  std::vector<float> b(a.size(), 0.25F);
  std::vector<float> c(a.size());
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    best = std::min(best, seconds_of([&] {
                      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0F,
                                  a.data(), n, b.data(), n, 0.0F, c.data(), n);
                    }));
  }
  return 2.0 * n * n * n / best;
}

double median_seconds(const std::function<void()>& work, int repeats) {
  work();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(seconds_of(work));
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<std::size_t>(repeats / 2)];
}

double bytes_of_this_process(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word != key + ":") continue;
    double kilobytes = 0;
    file >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

nlohmann::json output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) fail(command, ": cannot be started");
  std::string out;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    out.append(buffer.data(), got);
  }
  if (pclose(pipe) != 0) fail(command, ": failed");
  return nlohmann::json::parse(out);
}

double fitted_exponent(const std::vector<std::pair<double, double>>& points) {
  double x_mean = 0, y_mean = 0, covariance = 0, variance = 0;
  for (const auto& [n, seconds] : points) {
    x_mean += std::log(n) / static_cast<double>(points.size());
    y_mean += std::log(seconds) / static_cast<double>(points.size());
  }
  for (const auto& [n, seconds] : points) {
    covariance += (std::log(n) - x_mean) * (std::log(seconds) - y_mean);
    variance += (std::log(n) - x_mean) * (std::log(n) - x_mean);
  }
  return covariance / variance;
}

}  // namespace pumice::benchmark
