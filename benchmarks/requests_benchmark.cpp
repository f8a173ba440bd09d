// What does an index save, and how good do its answers stay as more and more is forgotten?
//
// Times of one run: a request of 5 examples to the index (opening and checking it, the answer, the
// transaction), the same request without an index (`consistent`, same scale), and retraining.
// Quality, as L1 = mean over the forgotten of |softmax − softmax of retrained|₁ against two models
// retrained without them: cohorts of 5 % in turn up to 20 %, all from one point of linearisation,
// and with the index refreshed after each.
//
//   requests_benchmark w.safetensors w.start.safetensors > results.json
//   requests_benchmark w.safetensors w.start.safetensors --quality > results.json   (8 trainings
//   more)
#include <cstdio>
#include <filesystem>

#include "machine.h"
#include "pumice/core/seed.h"
#include "pumice/evaluation/activation_distance.h"
#include "pumice/experiment/references.h"
#include "pumice/index/forgetting_index.h"
#include "pumice/model/checkpoint.h"

namespace {

using namespace pumice;
using nlohmann::json;
namespace files = std::filesystem;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Setting {
  Checkpoint model, start;
  Selection selection;
  Normalization normalization;
  TrainingOptions recipe;
  files::path folder;  // for indices, removed at the end

  ForgettingTask task(const Split& split) const {
    return {.model = *model.model,
            .weights = model.weights,
            .centre = start.weights.flat,
            .start = start.weights.flat,
            .train = selection.train,
            .split = split,
            .normalization = normalization,
            .weight_decay = recipe.weight_decay,
            .recipe = recipe};
  }
  Split without(std::vector<std::int64_t> cohort) const {
    Split split;
    std::sort(cohort.begin(), cohort.end());
    split.cohort = cohort;
    for (std::int64_t i = 0; i < selection.train.size(); ++i) {
      if (!std::binary_search(cohort.begin(), cohort.end(), i)) split.retain.push_back(i);
    }
    return split;
  }
  std::vector<std::string> ids(const std::vector<std::int64_t>& positions) const {
    std::vector<std::string> names;
    for (const auto i : positions)
      names.push_back(selection.train.ids[static_cast<std::size_t>(i)]);
    return names;
  }
  double build(const std::string& name) const {
    const Split all = without({});
    const ForgettingTask whole = task(all);
    SharedProblems shared(whole);
    return build_index(folder / name, {.task = whole, .checkpoint = model, .data = {}}, shared)
        .seconds;
  }
};

Setting load_setting(const std::string& model, const std::string& start) {
  Setting setting{.model = open_checkpoint(model),
                  .start = open_checkpoint(start),
                  .selection = {},
                  .normalization = {},
                  .recipe = {},
                  .folder = files::temp_directory_path() / "pumice-requests-benchmark"};
  const Metadata& metadata = setting.model.metadata;
  setting.selection = load(*stored_data_request(metadata));
  setting.normalization = normalization_for(metadata, setting.selection.train);
  setting.recipe = training_options_from_json(json::parse(metadata.at("recipe")));
  files::remove_all(setting.folder);
  files::create_directories(setting.folder);
  return setting;
}

// One whole request; the released weights.
Weights request(const Setting& setting, const std::string& name,
                const std::vector<std::int64_t>& cohort, const NoiseOptions& noise) {
  ForgettingIndex index(setting.folder / name);
  const IndexAnswer answer = index.answer(setting.ids(cohort), setting.selection.train, noise);
  index.commit(answer, {{setting.folder / "released.safetensors", [&](const files::path& path) {
                           setting.model.model->save(path, answer.scrubbed.sample,
                                                     setting.model.metadata);
                         }}});
  return answer.scrubbed.sample;
}

json times(const Setting& setting, const std::vector<std::int64_t>& order) {
  constexpr std::size_t size = 5, repeats = 5;
  const double build = setting.build("times");
  const auto cohort = [&](std::size_t i) {
    return std::vector<std::int64_t>(order.begin() + static_cast<std::int64_t>(i * size),
                                     order.begin() + static_cast<std::int64_t>((i + 1) * size));
  };
  std::vector<double> plain, noisy, without_index;
  for (std::size_t i = 0; i < repeats; ++i) {
    plain.push_back(benchmark::seconds_of([&] { request(setting, "times", cohort(2 * i), {}); }));
    noisy.push_back(benchmark::seconds_of([&] {
      request(setting, "times", cohort(2 * i + 1), {.scale = 1e-9, .shape = NoiseShape::paper});
    }));
  }
  const Split split = setting.without(cohort(0));
  const ForgettingTask task = setting.task(split);
  MethodOptions options;
  options.scale = 2;
  for (int i = 0; i < 3; ++i) {
    without_index.push_back(benchmark::seconds_of([&] {
      SharedProblems shared(task);
      scrub(task, shared, {.method = "consistent", .options = options});
    }));
  }
  const double retrain = benchmark::seconds_of([&] {
    SharedProblems shared(task);
    scrub(task, shared, {.method = "retrain"});
  });
  const double own = median(plain);
  return {{"build", build},
          {"request", own},
          {"request_with_noise", median(noisy)},
          {"forget_without_index", median(without_index)},
          {"retrain", retrain},
          {"index_bytes", files::file_size(setting.folder / "times/index.safetensors")},
          {"ratios",
           {{"retrain / request", retrain / own},
            {"retrain / request with noise", retrain / median(noisy)},
            {"forget without index / request", median(without_index) / own},
            {"retrain / (build + one request)", retrain / (build + own)}}}};
}

json quality(const Setting& setting, const std::vector<std::int64_t>& order) {
  const std::int64_t step = setting.selection.train.size() / 20;
  setting.build("one point");
  setting.build("refreshed");
  json rows = json::array();
  std::vector<std::int64_t> forgotten;
  for (std::int64_t share = 1; share <= 4; ++share) {
    const std::vector<std::int64_t> cohort(order.begin() + (share - 1) * step,
                                           order.begin() + share * step);
    forgotten.insert(forgotten.end(), cohort.begin(), cohort.end());
    const Weights one_point = request(setting, "one point", cohort, {});
    const Weights refreshed = request(setting, "refreshed", cohort, {});
    {
      ForgettingIndex index(setting.folder / "refreshed");
      index.refresh({setting.model.model, refreshed, setting.model.metadata},
                    setting.selection.train);
    }
    const Split split = setting.without(forgotten);
    const std::vector<Weights> retrained =
        retrained_references(*setting.start.model, setting.start.weights, setting.selection.train,
                             split, setting.normalization, {.recipe = setting.recipe, .count = 2});
    const auto distance = [&](const Weights& left, const Weights& right, const Dataset& data) {
      const at::Tensor inputs = network_inputs(data.images, setting.normalization);
      return activation_distances(softmax_outputs(*setting.model.model, left, inputs),
                                  softmax_outputs(*setting.model.model, right, inputs))
          .mean()
          .item<double>();
    };
    const Dataset gone = subset(setting.selection.train, split.cohort);
    const Dataset kept = subset(setting.selection.train, split.retain);
    const auto against = [&](const Weights& weights) {
      const auto mean = [&](const Dataset& data) {
        return (distance(weights, retrained[0], data) + distance(weights, retrained[1], data)) / 2;
      };
      return json{{"forgotten", mean(gone)},
                  {"retained", mean(kept)},
                  {"test", mean(setting.selection.test)}};
    };
    rows.push_back({{"share", 0.05 * static_cast<double>(share)},
                    {"floor",
                     {{"forgotten", distance(retrained[0], retrained[1], gone)},
                      {"retained", distance(retrained[0], retrained[1], kept)},
                      {"test", distance(retrained[0], retrained[1], setting.selection.test)}}},
                    {"original", against(setting.model.weights)},
                    {"one point", against(one_point)},
                    {"refreshed", against(refreshed)}});
  }
  return rows;
}

}  // namespace

int main(int argument_count, char** arguments) {
  benchmark::start_like_the_tool(arguments);
  const bool with_quality = argument_count == 4 && std::string(arguments[3]) == "--quality";
  if (argument_count != 3 && !with_quality) {
    std::fprintf(stderr, "requests_benchmark MODEL START [--quality] > results.json\n");
    return 2;
  }
  const Setting setting = load_setting(arguments[1], arguments[2]);
  RandomStream stream(setting.recipe.seed, "cohort");
  const std::vector<std::int64_t> order = stream.permutation(setting.selection.train.size());
  json result{{"machine", benchmark::machine_description()},
              {"examples", setting.selection.train.size()},
              {"classes", setting.selection.train.classes.size()},
              {"weights", setting.model.weights.flat.numel()},
              {"seconds", times(setting, order)}};
  if (with_quality) result["quality"] = quality(setting, order);
  files::remove_all(setting.folder);
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}
