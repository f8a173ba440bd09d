// What do several processes gain in a matrix-free solve, what do they send, and what does that mean
// for more machines than are at hand?
//
// Measured here: products (Jᵀ H J + μI) v of ResNet-18 at width 0.4 over N random images, by one
// process with all cores, by one with a single core, and by two with a single core each; sums over
// two processes of this host by size. From that a model on paper of 1 … 64 machines like this one:
//   seconds of a product = N/P · example + 2(P−1)/P · 8p / bandwidth + (2(P−1) + 4·2·log2 P) ·
//   latency
// (a ring for the vector; four sums of single numbers an iteration). What is not in it: machines of
// different speed (the slowest sets the pace), reading the images, a network that others use too.
//
//   processes_benchmark [--examples 500] [--products 3] [--out FILE]
//   processes_benchmark --member EXAMPLES PRODUCTS THREADS    one process, as a launcher starts it
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "machine.h"
#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/linalg/blas_kernels.h"
#include "pumice/linalg/threads.h"
#include "pumice/linearization/gauss_newton_operator.h"
#include "pumice/model/zoo.h"
#include "pumice/parallel/process_group.h"

namespace {

using namespace pumice;
using nlohmann::json;

constexpr std::int64_t classes = 10;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

json measure_sums(ProcessGroup& group, std::int64_t weights) {
  json sums = json::array();
  if (group.alone()) return sums;
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{10'000}, weights, 4 * weights}) {
    at::Tensor values = at::ones({count}, at::kDouble);
    const int repeats = count > 100'000 ? 5 : 50;
    group.sum(values);
    group.barrier();
    const double begin = now();
    for (int i = 0; i < repeats; ++i) group.sum(values);
    sums.push_back({{"bytes", 8 * count}, {"seconds", (now() - begin) / repeats}});
  }
  return sums;
}

json run_member(std::int64_t examples, int products, int threads) {
  set_threads(threads);
  ProcessGroup group(read_launch(launch_environment()));
  const Network network({.name = "resnet18", .width = 0.4, .classes = classes});
  const Weights weights = fresh_weights(network, 1);
  torch::manual_seed(1);
  const at::Tensor images =
      torch::randn({examples, 3, 32, 32}).contiguous(at::MemoryFormat::ChannelsLast);
  double in_sums = 0;
  ExampleStreamOptions options{.shard = {.index = group.rank(), .count = group.size()}};
  if (!group.alone()) {
    options.sum_over_processes = [&](at::Tensor& values) {
      const double begin = now();
      group.sum(values);
      in_sums += now() - begin;
    };
  }
  const ExampleStream stream(network, weights, images, options);
  std::vector<std::int64_t> all(static_cast<std::size_t>(examples));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const GaussNewtonOperator matrix(stream, all, {}, 0.1 * static_cast<double>(examples));
  const at::Tensor v = torch::randn({matrix.size()});
  at::Tensor product = matrix.apply(v);  // warms up
  group.barrier();
  in_sums = 0;
  const std::int64_t bytes = group.summed_bytes(), sums = group.sums();
  const double begin = now();
  for (int i = 0; i < products; ++i) product = matrix.apply(v);
  const double seconds = (now() - begin) / products;
  json result{{"processes", group.size()},
              {"threads_each", threads},
              {"examples", examples},
              {"weights", matrix.size()},
              {"seconds_a_product", seconds},
              {"seconds_in_sums", in_sums / products},  // waiting for the other included
              {"sums_a_product", (group.sums() - sums) / products},
              {"bytes_a_product", (group.summed_bytes() - bytes) / products},
              {"norm_of_the_product", product.norm().item<double>()}};
  result["sums"] = measure_sums(group, matrix.size());
  group.close();
  return group.first() ? result : json();
}

json run_processes(const std::string& own, int count, const std::string& arguments) {
  if (count == 1) return benchmark::output_of(text(own, " --member ", arguments));
  const std::string common = text("WORLD_SIZE=", count, " MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 ",
                                  own, " --member ", arguments);
  std::string line;
  for (int rank = 1; rank < count; ++rank) line += text("RANK=", rank, " ", common, " >&2 & ");
  return benchmark::output_of(text(line, "RANK=0 ", common));
}

struct Line {
  const char* name;
  double bandwidth, latency;  // bytes a second, seconds
};

json model_on_paper(double example, double weights) {
  const std::vector<Line> lines{
      {"1 Gbit/s", 0.117e9, 100e-6}, {"10 Gbit/s", 1.17e9, 50e-6}, {"25 Gbit/s", 2.9e9, 30e-6}};
  json rows = json::array();
  for (const Line& line : lines) {
    for (const double examples : {5e2, 5e3, 5e4, 1e6}) {
      double alone = 0;
      for (int machines = 1; machines <= 64; machines *= 2) {
        const double others = machines - 1;
        const double compute = examples / machines * example;
        const double transfer = 2 * others / machines * 8 * weights / line.bandwidth;
        const double waiting = (2 * others + 8 * std::log2(machines)) * line.latency;
        const double seconds = compute + transfer + waiting;
        if (machines == 1) alone = seconds;
        rows.push_back({{"network", line.name},
                        {"examples", examples},
                        {"machines", machines},
                        {"seconds_a_product", seconds},
                        {"share_of_messages", (transfer + waiting) / seconds},
                        {"speedup", alone / seconds},
                        {"efficiency", alone / seconds / machines}});
      }
    }
  }
  return rows;
}

json run_all(const std::string& own, std::int64_t examples, int products) {
  const int cores = available_cores();
  const auto arguments = [&](int threads) { return text(examples, " ", products, " ", threads); };
  json result{{"machine", benchmark::machine_description()}};
  const json wide = run_processes(own, 1, arguments(cores));
  const json narrow = run_processes(own, 1, arguments(1));
  const json two = run_processes(own, 2, arguments(std::max(1, cores / 2)));
  result["measured"] = {wide, narrow, two};
  const double of_two = two["seconds_a_product"];
  result["two_against_one_on_the_same_cores"] = wide["seconds_a_product"].get<double>() / of_two;
  result["two_cores_against_one"] = narrow["seconds_a_product"].get<double>() / of_two;
  result["relative_difference_of_the_norms"] = std::abs(
      two["norm_of_the_product"].get<double>() / wide["norm_of_the_product"].get<double>() - 1);
  const double example = wide["seconds_a_product"].get<double>() / static_cast<double>(examples);
  result["model"] = {{"seconds_an_example", example},
                     {"networks_are", "assumed, not measured"},
                     {"rows", model_on_paper(example, two["weights"])}};
  return result;
}

int run(const std::vector<std::string>& words, const std::string& own) {
  if (words.size() == 4 && words[0] == "--member") {
    const json result = run_member(std::stoll(words[1]), std::stoi(words[2]), std::stoi(words[3]));
    if (!result.is_null()) std::printf("%s\n", result.dump(2).c_str());
    return 0;
  }
  std::int64_t examples = 500;
  int products = 3;
  std::string out;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "--examples") {
      examples = std::stoll(words[i + 1]);
    } else if (words[i] == "--products") {
      products = std::stoi(words[i + 1]);
    } else if (words[i] == "--out") {
      out = words[i + 1];
    } else {
      fail("'", words[i], "': unknown, must be --examples, --products or --out");
    }
  }
  const std::string result = run_all(own, examples, products).dump(2) + "\n";
  if (!out.empty()) write_file_atomically(out, result);
  std::printf("%s", result.c_str());
  return 0;
}

}  // namespace

int main(int count, char** words) {
  restart_with_better_blas_kernels(words);
  try {
    return run({words + 1, words + count}, words[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "processes_benchmark: %s\n", error.what());
    return 1;
  }
}
