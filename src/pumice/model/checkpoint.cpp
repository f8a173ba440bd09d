#include "pumice/model/checkpoint.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "pumice/core/error.h"
#include "pumice/model/torchscript_model.h"

namespace pumice {
namespace {

using Json = nlohmann::json;

Json parse_metadata(const Metadata& metadata, const std::string& key) {
  try {
    return Json::parse(metadata.at(key));
  } catch (const Json::exception&) {
    fail("metadata '", key, "': '", metadata.at(key), "' is not valid JSON");
  }
}

std::vector<double> number_list(const Metadata& metadata, const std::string& key) {
  try {
    return parse_metadata(metadata, key).get<std::vector<double>>();
  } catch (const Json::exception&) {
    fail("metadata '", key, "': '", metadata.at(key), "', must be a list of numbers");
  }
}

bool is_zip(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  char start[2] = {};
  in.read(start, 2);
  return in && start[0] == 'P' && start[1] == 'K';
}

}  // namespace

Checkpoint open_checkpoint(const std::filesystem::path& path) {
  if (is_zip(path)) {
    std::shared_ptr<TorchScriptModel> model = TorchScriptModel::load(path);
    return {model, model->weights(), model->metadata()};
  }
  const TensorFile file = read_safetensors(path);
  const Architecture architecture =
      architecture_from_metadata(path.string(), file.metadata, file.tensors);
  try {
    auto network = std::make_shared<Network>(architecture);
    network->set_buffers(file.tensors);
    Weights weights = gather_weights(network->shared_layout(), file.tensors);
    const std::size_t expected = network->layout().entries().size() + network->buffers().size();
    if (file.tensors.size() != expected) {
      fail("has ", file.tensors.size(), " tensors, ", architecture.name, " has ", expected);
    }
    return {network, weights, file.metadata};
  } catch (const Error& reason) {
    fail(path.string(), ": ", reason.what());
  }
}

Normalization stored_normalization(const Metadata& metadata) {
  Normalization normalization;
  if (!metadata.contains("mean") || !metadata.contains("std")) return normalization;
  normalization.mean = number_list(metadata, "mean");
  normalization.deviation = number_list(metadata, "std");
  if (normalization.mean.size() != normalization.deviation.size()) {
    fail("metadata: mean has ", normalization.mean.size(), " numbers, std ",
         normalization.deviation.size());
  }
  for (const double deviation : normalization.deviation) {
    if (!(deviation > 0)) fail("metadata 'std': ", deviation, ", must be > 0");
  }
  return normalization;
}

std::optional<DataRequest> stored_data_request(const Metadata& metadata) {
  if (!metadata.contains("data")) return {};
  return data_request_from_json(parse_metadata(metadata, "data"));
}

void store(Metadata& metadata, const Normalization& normalization) {
  metadata["mean"] = Json(normalization.mean).dump();
  metadata["std"] = Json(normalization.deviation).dump();
}

namespace {
// Names of folders may hold bytes that JSON cannot.
std::string dump(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception&) {
    fail("metadata: a path or class name is not valid UTF-8 and cannot be stored, rename it");
  }
}
}  // namespace

void store(Metadata& metadata, const DataRequest& request) {
  metadata["data"] = dump(to_json(request));
}

void store(Metadata& metadata, const ClassTable& classes) {
  metadata["class_names"] = dump(classes.names);
  metadata["original_labels"] = Json(classes.original_labels).dump();
}

Normalization normalization_for(const Metadata& metadata, const Dataset& train,
                                const Normalization& given) {
  if (train.images.scalar_type() != at::kByte) {
    if (!given.empty()) fail("normalisation: given, but float32 images are used as they are");
    return {};
  }
  const Normalization stored = stored_normalization(metadata);
  if (given.empty()) return stored.empty() ? measure_normalization(train) : stored;
  Normalization full = given;
  const auto channels = static_cast<std::size_t>(train.images.size(1));
  for (auto* numbers : {&full.mean, &full.deviation}) {
    if (numbers->size() == 1) numbers->resize(channels, numbers->front());
    if (numbers->size() != channels) {
      fail("normalisation: ", full.mean.size(), " means and ", full.deviation.size(),
           " deviations, must be one of each, or one for each of ", channels, " channels");
    }
  }
  for (const double deviation : full.deviation) {
    if (!(deviation > 0)) fail("normalisation: deviation ", deviation, ", must be > 0");
  }
  if (!stored.empty() && stored != full) {
    fail("normalisation: the model was trained with another one (mean ", stored.mean.front(),
         ", deviation ", stored.deviation.front(), " in the first channel), it cannot be changed");
  }
  return full;
}

}  // namespace pumice
