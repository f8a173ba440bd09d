// What leaves the program: results as plain data, readable without LibTorch and without the model.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace pumice {

// {"pumice_record": kind, "schema": 1, "created_by": …, "revision": …, …content}. Records never
// hold noise, pictures, or ids of a cohort (unless asked for).
constexpr int record_schema = 1;

struct Record {
  std::string kind;  // "forget", "audit"
  nlohmann::json content = nlohmann::json::object();
};

nlohmann::json to_json(const Record& record);
// Throws Error with the file's name for something that is no record, or one of a later schema.
Record read_record(const std::filesystem::path& path);
void write_record(const std::filesystem::path& path, const Record& record);  // atomically

// A keyed digest of a set of ids, whatever their order: "blake2b-keyed:<hex>". Ids can be guessed,
// so a plain digest would let anyone confirm who was in the cohort.
std::string keyed_digest(const std::string& key, std::vector<std::string> ids);

// The key in a file (64 hex digits); a missing file is made, readable by its owner alone.
std::string read_or_make_key(const std::filesystem::path& path);

}  // namespace pumice
