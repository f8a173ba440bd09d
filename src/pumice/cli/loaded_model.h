// A trained model together with the data that it was trained on: where every command after train
// begins.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/normalization.h"
#include "pumice/model/checkpoint.h"
#include "pumice/model/training.h"

namespace pumice::cli {

struct LoadedModel {
  Checkpoint checkpoint;
  DataRequest
      request;  // as stored in the checkpoint, except for what was given on the command line
  Selection selection;
  Normalization normalization;
};

// Opens `model` and loads its data. A file that does not say what it was trained on needs --data on
// the command line (UsageError).
LoadedModel load_model(const std::string& model, const CLI::App& command, const DataRequest& given);

// Throws Error, naming the file, unless its weights have the names and shapes of `weights`.
void check_same_network(const std::string& file, const Checkpoint& other, const Weights& weights);

// Throws Error if the metadata say that the model was trained on other data.
void check_data_digest(const Metadata& metadata, const Dataset& train);

// How the model says that it was trained; none in foreign files.
std::optional<TrainingOptions> stored_recipe(const Metadata& metadata);

// One part of a selection: "train", "validation" or "test". Throws Error if it is empty.
const Dataset& part_named(const Selection& selection, const std::string& part);

// The examples with these ids, in their order. Throws Error naming the first that is unknown or
// repeated.
Dataset examples_with_ids(const Dataset& dataset, const std::vector<std::string>& ids);

}  // namespace pumice::cli
