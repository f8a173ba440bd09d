#include "pumice/experiment/step_store.h"

#include "pumice/core/atomic_file.h"
#include "pumice/core/digest.h"
#include "pumice/core/error.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* result_name = "step.json";
constexpr std::size_t shown_digits = 16;

}  // namespace

std::string StepKey::digest() const {
  Digest digest;
  digest.add_text(kind);
  digest.add_text(depends.dump());
  return digest.hex();
}

fs::path StepStore::folder_of(const StepKey& key) const {
  return folder_ / (key.kind + "-" + key.digest().substr(0, shown_digits));
}

std::optional<StepResult> StepStore::find(const StepKey& key) const {
  const fs::path file = folder_of(key) / result_name;
  if (!fs::exists(file)) return {};
  const Json stored = Json::parse(read_file(file), nullptr, false);
  if (!stored.is_object() || stored.value("digest", "") != key.digest() ||
      !stored.contains("content") || !stored.contains("seconds")) {
    fail(file.string(), ": is damaged or of another step; remove its folder to compute it again");
  }
  return StepResult{.content = stored.at("content"), .seconds = stored.at("seconds")};
}

fs::path StepStore::prepare(const StepKey& key) const {
  const fs::path folder = folder_of(key);
  std::error_code reason;
  fs::create_directories(folder, reason);
  if (reason) fail(folder.string(), ": cannot be made, ", reason.message());
  return folder;
}

void StepStore::finish(const StepKey& key, const StepResult& result) const {
  const Json stored{{"kind", key.kind},
                    {"digest", key.digest()},
                    {"depends", key.depends},
                    {"seconds", result.seconds},
                    {"content", result.content}};
  write_file_atomically(prepare(key) / result_name, stored.dump(1) + "\n");
}

}  // namespace pumice
