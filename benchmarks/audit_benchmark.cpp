// How long does an audit take, against what its FLOPs take at the rate of the machine's matrix
// product?
//
// ResNet-18 at width 0.4, 5 classes, 500 training images (25 to be forgotten) and 500 test images,
// two retrained models, all four models with noise; all readouts but relearning and shadow models.
// Images are random and weights fresh or moved at random: neither changes the work.
//
//   audit_benchmark > results.json
//   audit_benchmark bounds adversary     these parts alone
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "machine.h"
#include "pumice/evaluation/adversarial_query.h"
#include "pumice/evaluation/audit.h"
#include "pumice/linearization/linearization.h"
#include "pumice/model/zoo.h"

namespace {

using namespace pumice;
using nlohmann::json;

constexpr std::int64_t train_examples = 500, test_examples = 500, forgotten = 25, classes = 5;

struct Setting {
  std::shared_ptr<Network> network;
  Dataset train, test;
  Split split;
  Normalization normalization;
  std::vector<AuditedModel> models;  // subject, original, two retrained
};

Dataset random_images(std::int64_t count, const std::string& part) {
  Dataset data;
  data.images = torch::randint(0, 256, {count, 3, 32, 32}).to(at::kByte);
  data.labels = torch::arange(count, at::kLong) % classes;
  for (std::int64_t i = 0; i < count; ++i) data.ids.push_back(part + "/" + std::to_string(i));
  for (std::int64_t k = 0; k < classes; ++k) {
    data.classes.names.push_back(std::to_string(k));
    data.classes.original_labels.push_back(k);
  }
  return data;
}

Setting make_setting() {
  torch::manual_seed(1);
  Setting setting;
  setting.network =
      std::make_shared<Network>(Architecture{.name = "resnet18", .width = 0.4, .classes = classes});
  setting.train = random_images(train_examples, "train");
  setting.test = random_images(test_examples, "test");
  setting.normalization = measure_normalization(setting.train);
  for (std::int64_t i = 0; i < train_examples; ++i) {
    (i < forgotten ? setting.split.cohort : setting.split.retain).push_back(i);
  }
  const Weights weights = fresh_weights(*setting.network, 1);
  for (int i = 0; i < 4; ++i) {
    const Weights moved{weights.layout, weights.flat + 1e-3 * torch::randn_like(weights.flat)};
    setting.models.push_back(
        {setting.network, moved, {moved, at::full({moved.flat.numel()}, 1e-6, at::kDouble)}});
  }
  return setting;
}

// FLOPs of one part, from the FLOPs of one example's forward pass.
struct Work {
  double forward = 0;  // f
  double weights = 0;  // p

  // A forward pass, c passes back to the layers, and the rows of the Jacobian (as many again).
  double rows(double examples) const {
    return examples * forward * static_cast<double>(1 + 2 * classes);
  }
  // Rows, and their c×c products.
  double blocks(double examples) const {
    return rows(examples) + examples * 2 * static_cast<double>(classes * classes) * weights;
  }
};

json adversary(const Setting& setting, const Work& work, const AuditOptions& options) {
  const ImageBox box = pixel_box(setting.normalization);
  const at::Tensor starts =
      network_inputs(subset(setting.train, setting.split.cohort).images, setting.normalization);
  std::int64_t evaluations = 0, gradients = 0;
  const double seconds = benchmark::seconds_of([&] {
    const Linearization examined(*setting.network, setting.models[2].distribution.mean, starts);
    for (std::size_t model = 0; model < setting.models.size(); ++model) {
      const AuditedModel& reference = setting.models[model == 2 ? 3 : 2];
      for (const AdversarialQuery& query : find_adversarial_queries(
               {examined, *setting.network, reference.distribution.mean, starts},
               setting.models[model].distribution.mean, reference.distribution,
               starts.narrow(0, 0, options.adversarial_starts), box,
               {.max_iterations = options.adversarial_iterations})) {
        evaluations += query.evaluations;
        gradients += query.gradients;
      }
    }
  });
  // Q: the scrubbed model's answer and the rows of the reference. Its gradient: a training step for
  // v, three forward passes with tangents and three back, and one of each for the scrubbed model.
  const double flops = static_cast<double>(evaluations) * (work.forward + work.blocks(1)) +
                       static_cast<double>(gradients) * work.forward * (3 + 3 + 3 + 2);
  return {{"seconds", seconds},
          {"evaluations", evaluations},
          {"gradients", gradients},
          {"flops", flops}};
}

json run(const std::set<std::string>& chosen) {
  const Setting setting = make_setting();
  AuditTask task{.train = setting.train,
                 .split = setting.split,
                 .test = setting.test,
                 .normalization = setting.normalization,
                 .original = setting.models[1],
                 .references = {setting.models[2], setting.models[3]}};
  const Linearization cohort(
      *setting.network, setting.models[0].released,
      network_inputs(subset(setting.train, setting.split.cohort).images, setting.normalization));
  const Work work{cohort.forward_flops(), static_cast<double>(cohort.columns())};
  const auto models = static_cast<double>(setting.models.size());
  const double all = train_examples + test_examples;
  AuditOptions defaults;
  const double rate_before = benchmark::sgemm_rate();

  json parts = json::object();
  const auto wanted = [&](const std::string& name) {
    return chosen.empty() || chosen.contains(name);
  };
  const auto part = [&](const std::string& name, std::vector<std::string> groups, double flops) {
    if (!wanted(name)) return;
    std::fprintf(stderr, "%s\n", name.c_str());
    const double seconds = benchmark::seconds_of([&] {
      Audit audit(task, {.groups = std::move(groups)});
      audit.judge("model", setting.models[0]);
    });
    parts[name] = {{"seconds", seconds}, {"flops", flops}};
  };
  const double answers = models * all * work.forward;
  const double path = static_cast<double>(defaults.path_steps + 1) * all * work.forward;
  const auto queries = static_cast<double>(defaults.joint_queries);
  const double joint_rows = queries * static_cast<double>(classes);
  const double bounds =
      models * (work.blocks(all) + work.rows(queries) + joint_rows * joint_rows * work.weights);
  const double split = models * cohort.kernel().summary.flops();
  part("answers", {"errors", "attack", "margin", "distance", "utility"}, answers);
  part("path", {"path"}, path + 3 * all * work.forward);
  part("bounds", {"bounds"}, bounds);
  part("split", {"split"}, split);
  if (wanted("adversary")) parts["adversary"] = adversary(setting, work, defaults);
  const double rate = (rate_before + benchmark::sgemm_rate()) / 2;

  double seconds = 0, flops = 0;
  for (auto& [name, values] : parts.items()) {
    seconds += values["seconds"].get<double>();
    flops += values["flops"].get<double>();
    values["over_sgemm_time"] =
        values["seconds"].get<double>() / (values["flops"].get<double>() / rate);
  }
  return {{"machine", benchmark::machine_description()},
          {"case", "resnet18-w0.4-c5, 500 + 500 images, 4 models with noise"},
          {"sgemm_rate", rate},
          {"parts", parts},
          {"seconds", seconds},
          {"flops", flops},
          {"over_sgemm_time", seconds / (flops / rate)}};
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::start_like_the_tool(arguments);
  std::printf("%s\n", run({arguments + 1, arguments + count}).dump(2).c_str());
}
