#include "pumice/cli/loaded_model.h"

#include <unordered_map>

#include "pumice/cli/command.h"

namespace pumice::cli {

LoadedModel load_model(const std::string& model, const CLI::App& command,
                       const DataRequest& given) {
  LoadedModel loaded{
      .checkpoint = open_checkpoint(model), .request = given, .selection = {}, .normalization = {}};
  const auto stored = stored_data_request(loaded.checkpoint.metadata);
  if (stored) {
    loaded.request = inherit_data_options(command, given, *stored);
  } else if (command.get_option("--data")->count() == 0) {
    throw UsageError(text(model, ": does not say which data it was trained on, give --data"));
  }
  loaded.selection = load(loaded.request);
  loaded.normalization = normalization_for(loaded.checkpoint.metadata, loaded.selection.train,
                                           loaded.request.normalization);
  return loaded;
}

void check_same_network(const std::string& file, const Checkpoint& other, const Weights& weights) {
  if (*other.weights.layout == *weights.layout) return;
  fail(file, ": ", other.weights.flat.numel(), " weights in ",
       other.weights.layout->entries().size(),
       " tensors, must have the names and shapes of the model (", weights.flat.numel(), " in ",
       weights.layout->entries().size(), ")");
}

void check_data_digest(const Metadata& metadata, const Dataset& train) {
  if (!metadata.contains("data_digest")) return;
  const std::string own = digest(train);
  if (metadata.at("data_digest") == own) return;
  fail("data: digest ", own, ", the model was trained on ", metadata.at("data_digest"),
       "; must be the same examples, in the same order");
}

std::optional<TrainingOptions> stored_recipe(const Metadata& metadata) {
  if (!metadata.contains("recipe")) return {};
  return training_options_from_json(nlohmann::json::parse(metadata.at("recipe"), nullptr, false));
}

const Dataset& part_named(const Selection& selection, const std::string& part) {
  const Dataset& dataset = part == "test"         ? selection.test
                           : part == "validation" ? selection.validation
                                                  : selection.train;
  if (dataset.size() == 0) fail("data: the ", part, " part is empty");
  return dataset;
}

Dataset examples_with_ids(const Dataset& dataset, const std::vector<std::string>& ids) {
  std::unordered_map<std::string, std::int64_t> position_of;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    position_of.emplace(dataset.ids[static_cast<std::size_t>(i)], i);
  }
  std::vector<std::int64_t> positions;
  std::unordered_map<std::string, int> seen;
  for (const std::string& id : ids) {
    const auto found = position_of.find(id);
    if (found == position_of.end()) {
      fail("ids: '", id, "' is not among the ", dataset.size(), " selected examples");
    }
    if (++seen[id] > 1) fail("ids: '", id, "' is listed twice");
    positions.push_back(found->second);
  }
  return subset(dataset, positions);
}

}  // namespace pumice::cli
