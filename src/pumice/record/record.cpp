#include "pumice/record/record.h"

#include <algorithm>

#include "pumice/core/atomic_file.h"
#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/core/revision.h"
#include "pumice/core/system_random.h"

namespace pumice {
namespace {

constexpr const char* kind_key = "pumice_record";
constexpr std::size_t key_bytes = 32;

}  // namespace

nlohmann::json to_json(const Record& record) {
  nlohmann::json json{{kind_key, record.kind},
                      {"schema", record_schema},
                      {"created_by", text("pumice ", version())},
                      {"revision", revision()}};
  json.update(record.content);
  return json;
}

Record read_record(const std::filesystem::path& path) {
  const nlohmann::json json = nlohmann::json::parse(read_file(path), nullptr, false);
  if (!json.is_object() || !json.contains(kind_key) || !json.at(kind_key).is_string() ||
      !json.contains("schema") || !json.at("schema").is_number_integer()) {
    fail(path.string(), ": is no record of pumice (no '", kind_key, "' or 'schema' in it)");
  }
  const int schema = json.at("schema");
  if (schema > record_schema) {
    fail(path.string(), ": schema ", schema, ", this version reads up to ", record_schema);
  }
  Record record{.kind = json.at(kind_key), .content = json};
  record.content.erase(kind_key);
  record.content.erase("schema");
  return record;
}

void write_record(const std::filesystem::path& path, const Record& record) {
  write_file_atomically(path, to_json(record).dump(2) + "\n");
}

std::string keyed_digest(const std::string& key, std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  Digest digest(key);
  digest.add_number(ids.size());
  for (const std::string& id : ids) digest.add_text(id);
  return "blake2b-keyed:" + digest.hex();
}

std::string read_or_make_key(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    write_file_atomically(path, random_hex(key_bytes) + "\n", Readers::owner);
  }
  std::string key = read_file(path);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  const bool hex =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isxdigit(c); });
  if (key.size() != 2 * key_bytes || !hex) {
    fail(path.string(), ": ", key.size(), " characters, a key must be ", 2 * key_bytes,
         " hex digits");
  }
  return key;
}

}  // namespace pumice
