#include "pumice/data/data_request.h"

#include <memory>

#include "pumice/core/error.h"

namespace pumice {
namespace {

void put(nlohmann::json& json, const char* key, const std::optional<std::int64_t>& value) {
  if (value) json[key] = *value;
}

std::optional<std::int64_t> take(const nlohmann::json& json, const char* key) {
  if (!json.contains(key)) return {};
  return json.at(key).get<std::int64_t>();
}

}  // namespace

Selection load(const DataRequest& request) {
  const std::unique_ptr<DataSource> source = open_source(request.spec, request.source);
  if (request.test_spec.empty()) return select(*source, request.selection);
  const std::unique_ptr<DataSource> test_source = open_source(request.test_spec, request.source);
  return select(*source, request.selection, test_source.get());
}

nlohmann::json to_json(const DataRequest& request) {
  nlohmann::json json{{"source", request.spec},
                      {"classes", request.selection.classes},
                      {"validation_per_class", request.selection.validation_per_class},
                      {"seed", request.selection.seed}};
  if (!request.test_spec.empty()) json["test_source"] = request.test_spec;
  put(json, "image_size", request.source.image_size);
  put(json, "channels", request.source.channels);
  put(json, "per_class", request.selection.per_class);
  put(json, "test_per_class", request.selection.test_per_class);
  return json;
}

DataRequest data_request_from_json(const nlohmann::json& json) {
  try {
    DataRequest request;
    request.spec = json.at("source").get<std::string>();
    request.test_spec = json.value("test_source", "");
    request.source.image_size = take(json, "image_size");
    request.source.channels = take(json, "channels");
    request.selection.classes = json.value("classes", "");
    request.selection.per_class = take(json, "per_class");
    request.selection.test_per_class = take(json, "test_per_class");
    request.selection.validation_per_class = json.value("validation_per_class", std::int64_t{0});
    request.selection.seed = json.value("seed", std::uint64_t{1});
    return request;
  } catch (const nlohmann::json::exception& reason) {
    fail("metadata: the stored data selection cannot be read, ", reason.what());
  }
}

}  // namespace pumice
