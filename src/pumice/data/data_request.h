// A data set as a command asks for it: source, options and selection, in one value that can be
// stored in a checkpoint's metadata and used again.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "pumice/data/data_source.h"
#include "pumice/data/normalization.h"
#include "pumice/data/selection.h"

namespace pumice {

struct DataRequest {
  std::string spec = "fashion-mnist";
  std::string test_spec = {};  // "": the test part of `spec`
  SourceOptions source = {};
  SelectionOptions selection = {};
  // Given on the command line; empty: the model's own, else measured. Not stored with the selection,
  // since a checkpoint holds the one that was used.
  Normalization normalization = {};
};

Selection load(const DataRequest& request);

nlohmann::json to_json(const DataRequest& request);
DataRequest data_request_from_json(const nlohmann::json& json);  // throws Error naming the key

}  // namespace pumice
