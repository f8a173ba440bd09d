// The record of an experiment, put together from what its steps left.
#include <sys/sysinfo.h>
#include <torch/version.h>

#include <algorithm>
#include <fstream>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/experiment/experiment.h"
#include "pumice/linalg/threads.h"
#include "pumice/record/record.h"

namespace pumice {
namespace {

using Json = nlohmann::json;

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

Json machine() {
  struct sysinfo memory {};
  ::sysinfo(&memory);
  return {{"processor", processor_name()},
          {"cores", available_cores()},
          {"memory", bytes_text(static_cast<double>(memory.totalram) * memory.mem_unit)},
          {"libtorch", TORCH_VERSION}};
}

Json result_of(const StepStore& store, const StepKey& key) {
  const auto result = store.find(key);
  if (!result) fail(store.folder_of(key).string(), ": this step is not done yet");
  return result->content;
}

Json methods_json(const Protocol& protocol) {
  Json methods = Json::array();
  for (const MethodProtocol& method : protocol.methods) {
    Json json = identity(method);
    const NoiseOptions& noise = method.scrub.noise;
    json.update({{"label", method.label},
                 {"description", method_named(method.scrub.method).description},
                 {"noise", noise.scale}});
    if (noise.scale > 0) json["noise_shape"] = noise_shape_name(noise.shape);
    methods.push_back(json);
  }
  return methods;
}

Json run_json(const RunContext& context, const RunSteps& steps, const std::string& key) {
  const StepStore& store = context.setup().store();
  Json references = Json::array();
  for (const StepKey& reference : steps.references) {
    references.push_back(result_of(store, reference));
  }
  Json methods = Json::object();
  for (const MethodProtocol& method : context.protocol().methods) {
    Json json{{"summary", result_of(store, steps.scrubs.at(method.label)).at("summary")}};
    const Json audit = result_of(store, steps.audits.at(method.label));
    if (!audit.at("audit").is_null()) {
      json["audit"] = audit.at("audit");
      json["summary"]["reference"] = audit.at("reference");
    }
    const auto tradeoff = steps.tradeoffs.find(method.label);
    if (tradeoff != steps.tradeoffs.end()) {
      const Json entries = result_of(store, tradeoff->second);
      if (!entries.is_null()) json["tradeoff"] = entries;
    }
    methods[method.label] = json;
  }
  Json run{
      {"seed", context.data().seed},
      {"cohort", context.cohort()},
      {"cohort_size", context.split().cohort.size()},
      {"cohort_digest", keyed_digest(key, context.cohort_ids())},
      {"data_digest", context.data().train_digest},
      {"training", {{"original", result_of(store, steps.original)}, {"references", references}}},
      {"methods", methods}};
  if (steps.ablations) run["ablations"] = result_of(store, *steps.ablations);
  if (steps.landscape) run["landscape"] = result_of(store, *steps.landscape);
  if (steps.projection) run["projection"] = result_of(store, *steps.projection);
  return run;
}

}  // namespace

Json Experiment::record(const std::string& command, const std::string& key) const {
  const Protocol& protocol = setup_.protocol();
  const SeedData& first = setup_.seeds().front();
  const ClassTable& classes = first.selection.train.classes;
  const Start network = setup_.network_for(first);
  Json model{{"weights", network.weights.layout->total()}};
  if (const auto* zoo = dynamic_cast<const Network*>(network.model.get())) {
    model.update(
        {{"architecture", zoo->architecture().name}, {"width", zoo->architecture().width}});
  }
  if (!protocol.model.body.empty()) {
    model.update({{"body", protocol.model.body.string()}, {"body_digest", setup_.body_digest()}});
  } else if (protocol.model.pretraining) {
    model["pretraining"] = {{"data", protocol.model.pretraining->data.spec},
                            {"recipe", to_json(protocol.model.pretraining->recipe)},
                            {"result", result_of(setup_.store(), *setup_.pretraining())}};
  }
  double seconds = 0;
  for (const StepListing& step : steps()) seconds += step.seconds;
  const auto cohort_class = parse_classes(protocol.cohort_class, classes).front();
  Json runs = Json::array();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    runs.push_back(run_json(*contexts_[i], runs_[i], key));
  }
  return {{"title", protocol.title},
          {"protocol", protocol.text},
          {"command", command},
          {"machine", machine()},
          {"threads", setup_.threads()},
          {"seconds", seconds},
          {"data",
           {{"spec", protocol.data.spec},
            {"classes", classes.names},
            {"train", first.selection.train.size()},
            {"test", first.selection.test.size()},
            {"validation", first.selection.validation.size()}}},
          {"model", model},
          {"recipe", to_json(protocol.recipe)},
          {"weight_decay", protocol.recipe.weight_decay},
          {"request",
           {{"cohort_size", protocol.cohort_size},
            {"cohort_class", classes.names[static_cast<std::size_t>(cohort_class)]},
            {"cohorts", protocol.cohorts},
            {"seeds", protocol.seeds}}},
          {"references", {{"count", protocol.references}, {"replace", protocol.replace}}},
          {"noise_repeatable", true},
          {"methods", methods_json(protocol)},
          {"runs", runs}};
}

std::vector<std::filesystem::path> Experiment::traces() const {
  std::vector<std::filesystem::path> traces;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    // Retrained models never saw the cohort; everything that began with w(D) did.
    const auto add = [&](const StepKey& key) {
      const std::filesystem::path folder = setup_.store().folder_of(key);
      if (std::find(traces.begin(), traces.end(), folder) == traces.end()) traces.push_back(folder);
    };
    add(runs_[i].original);
    for (const auto& [label, key] : runs_[i].scrubs) add(key);
    for (std::int64_t k = 0; k < setup_.protocol().shadows; ++k) {
      add(contexts_[i]->key(contexts_[i]->shadow_plan(true, k)));
    }
  }
  return traces;
}

}  // namespace pumice
