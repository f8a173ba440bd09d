// How fast and how lean is the kernel, against what the machine's matrix product can do and against
// the paper's way?
//
// Every case runs in a process of its own, so that its peak memory is its own. FLOPs are those of
// the chosen contractions, of forming rows, and of the passes through the network (two for each
// multiply-add of convolutions and linear layers).
//
//   kernel_benchmark [--quick] > results.json        all cases
//   kernel_benchmark --case NAME [CONTRACTION]       one case, in this process
#include <torch/csrc/autograd/autograd.h>
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
#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/linearization/linearization.h"
#include "pumice/model/zoo.h"

namespace {

using namespace pumice;
using nlohmann::json;

struct Case {
  const char* name;
  Architecture architecture;
  std::int64_t examples;
  const char* memory;  // budget
  bool quick;          // part of --quick
};

const std::vector<Case>& cases() {
  const Architecture paper{.name = "resnet18", .width = 0.4, .classes = 5};
  static const std::vector<Case> all{
      {"resnet18-w0.4-c5-n125", paper, 125, "1.6G", true},
      {"resnet18-w0.4-c5-n250", paper, 250, "1.6G", false},
      {"resnet18-w0.4-c5-n500", paper, 500, "1.6G", false},
      {"resnet18-w0.4-c5-n1000", paper, 1000, "1.6G", false},
      {"allcnn-w1.0-c5-n500", {.name = "allcnn", .width = 1, .classes = 5}, 500, "1.6G", false},
      {"resnet18-w1.0-c10-n200",
       {.name = "resnet18", .width = 1, .classes = 10},
       200,
       "1.6G",
       false}};
  return all;
}

struct Setting {
  std::shared_ptr<Network> network;
  Weights weights;
  at::Tensor inputs;
};

Setting make_setting(const Architecture& architecture, std::int64_t examples) {
  auto network = std::make_shared<Network>(architecture);
  Weights weights = fresh_weights(*network, 1);
  torch::manual_seed(1);
  at::Tensor inputs = torch::randn({examples, architecture.input_channels, architecture.image_size,
                                    architecture.image_size})
                          .contiguous(at::MemoryFormat::ChannelsLast);
  return {network, weights, inputs};
}

json run_kernel(const Case& wanted, std::optional<Contraction> forced) {
  const Setting setting = make_setting(wanted.architecture, wanted.examples);
  const double rate_before = benchmark::sgemm_rate();
  const double before = benchmark::bytes_of_this_process("VmRSS");
  const Linearization linearization(*setting.network, setting.weights, setting.inputs);
  const Kernel kernel =
      linearization.kernel({.memory = parse_bytes(wanted.memory), .contraction = forced});
  const double peak = benchmark::bytes_of_this_process("VmHWM");
  const double rate = (rate_before + benchmark::sgemm_rate()) / 2;  // before and after
  std::fprintf(stderr, "%s\n%s", wanted.name, kernel.summary.full().c_str());
  json result = to_json(kernel.summary);
  result["sgemm_rate"] = rate;
  result["share_of_sgemm"] = kernel.summary.flops() / kernel.summary.seconds / rate;
  result["bytes_before"] = before;
  result["peak_bytes"] = peak;
  return result;
}

// The paper's way: a full backward pass for each image and class, all rows kept, one product. As
// many rows as `rows` tells, then extended: gradients grow with the number of rows, the product
// with its square.
json run_paper(const Case& wanted, std::int64_t rows) {
  const Architecture& architecture = wanted.architecture;
  const Setting setting = make_setting(architecture, rows / architecture.classes);
  const double rate = benchmark::sgemm_rate();
  at::Tensor jacobian = at::empty({rows, setting.weights.layout->total()});
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (std::int64_t i = 0; i < setting.inputs.size(0); ++i) {
    const Weights leaf{setting.weights.layout, setting.weights.flat.clone().requires_grad_()};
    const at::Tensor logits = setting.network->logits(leaf, setting.inputs.narrow(0, i, 1));
    for (std::int64_t c = 0; c < architecture.classes; ++c) {
      jacobian[i * architecture.classes + c].copy_(
          torch::autograd::grad({logits[0][c]}, {leaf.flat}, {}, true)[0]);
    }
  }
  const double gradients = seconds();
  const at::Tensor theta = jacobian.mm(jacobian.t());
  const double product = seconds() - gradients;
  const double growth =
      static_cast<double>(wanted.examples * architecture.classes) / static_cast<double>(rows);
  return {{"rows_measured", rows},
          {"seconds_gradients", gradients},
          {"seconds_product", product},
          {"sgemm_rate", rate},
          {"peak_bytes_measured", benchmark::bytes_of_this_process("VmHWM")},
          {"extended_seconds", gradients * growth + product * growth * growth},
          {"extended_jacobian_bytes", static_cast<double>(jacobian.nbytes()) * growth}};
}

json in_own_process(const std::string& program, const std::string& name) {
  return benchmark::output_of(program + " --case " + name);
}

constexpr const char* paper_case = "paper-way-resnet18-w0.4-c5-n500";
constexpr std::int64_t paper_rows = 300;
const double paper_cheapest_flops = 4.24e12;  // METHOD: best choice for each layer, N = 500, c = 5

const Case& case_named(const std::string& name) {
  for (const Case& known : cases()) {
    if (name == known.name) return known;
  }
  fail("case: '", name, "' is unknown");
}

json all_cases(const std::string& program, bool quick) {
  json results{{"machine", benchmark::machine_description()}, {"cases", json::object()}};
  std::vector<std::pair<double, double>> growth;
  for (const Case& known : cases()) {
    if (quick && !known.quick) continue;
    json result = in_own_process(program, known.name);
    if (std::string(known.name).starts_with("resnet18-w0.4-c5")) {
      growth.emplace_back(known.examples, result.at("seconds").get<double>());
    }
    results["cases"][known.name] = std::move(result);
  }
  if (quick) return results;
  const json paper = in_own_process(program, paper_case);
  const json& ours = results["cases"]["resnet18-w0.4-c5-n500"];
  const double seconds = ours.at("seconds");
  results["paper_way"] = paper;
  results["ratios"] = {
      {"time_over_cheapest_flops_at_sgemm_rate",
       seconds / (paper_cheapest_flops / ours.at("sgemm_rate").get<double>())},
      {"times_faster_than_paper_way", paper.at("extended_seconds").get<double>() / seconds},
      {"times_less_memory_than_paper_way",
       paper.at("extended_jacobian_bytes").get<double>() / ours.at("peak_bytes").get<double>()},
      {"fitted_exponent_of_time_in_n", benchmark::fitted_exponent(growth)}};
  return results;
}

}  // namespace

int main(int count, char** arguments) {
  pumice::benchmark::start_like_the_tool(arguments);
  try {
    const std::string first = count > 1 ? arguments[1] : "";
    json results;
    if (first == "--case" && (count == 3 || count == 4)) {
      const std::string name = arguments[2];
      std::optional<Contraction> forced;
      if (count == 4) forced = contraction_named(arguments[3]);
      results = name == paper_case ? run_paper(case_named("resnet18-w0.4-c5-n500"), paper_rows)
                                   : run_kernel(case_named(name), forced);
    } else if (first.empty() || first == "--quick") {
      results = all_cases(arguments[0], first == "--quick");
    } else {
      std::fprintf(stderr, "usage: kernel_benchmark [--quick | --case NAME [CONTRACTION]]\n");
      return 2;
    }
    std::printf("%s\n", results.dump(2).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_benchmark: %s\n", error.what());
    return 1;
  }
}
