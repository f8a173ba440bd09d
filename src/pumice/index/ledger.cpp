#include "pumice/index/ledger.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"

namespace pumice {
namespace {

using Json = Ledger::Json;

constexpr const char* none = "none";

std::string digest_of(const Json& entry) {
  Json rest = entry;
  rest.erase("digest");
  Digest digest;
  digest.add_text(rest.dump());
  return digest.label();
}

// Why this line cannot follow the entries before it; "" if it can.
std::string damage(const std::string& line, const Ledger& before, Json& entry) {
  entry = Json::parse(line, nullptr, false);
  if (!entry.is_object()) return "is no JSON object";
  for (const char* key : {"when", "kind", "previous", "digest"}) {
    if (!entry.contains(key) || !entry[key].is_string()) return text("has no '", key, "'");
  }
  // Also finds a key that is there twice, and spaces that the digest would not see.
  if (entry.dump() != line) return "is not in the form it was written in";
  if (entry["digest"] != digest_of(entry)) return "does not have the content of its digest";
  if (entry["previous"] != before.head()) return "does not follow the line before it";
  if (!entry.contains("entry") || entry["entry"] != before.entries().size() + 1) {
    return "has the wrong number";
  }
  return "";
}

}  // namespace

Ledger::Ledger(const std::string& name, std::string_view content) {
  std::size_t number = 0;
  while (!content.empty()) {
    ++number;
    const std::size_t end = content.find('\n');
    if (end == std::string_view::npos) fail(name, ":", number, ": cut off, must end with the line");
    Json entry;
    const std::string reason = damage(std::string(content.substr(0, end)), *this, entry);
    if (!reason.empty()) fail(name, ":", number, ": damaged, it ", reason);
    entries_.push_back(std::move(entry));
    content.remove_prefix(end + 1);
  }
}

void Ledger::append(const std::string& kind, const Json& content) {
  Json entry{{"entry", entries_.size() + 1}, {"when", utc_now()}, {"kind", kind}};
  for (const auto& [key, value] : content.items()) entry[key] = value;
  entry["previous"] = head();
  entry["digest"] = digest_of(entry);
  entries_.push_back(std::move(entry));
}

std::string Ledger::head() const {
  return entries_.empty() ? none : entries_.back()["digest"].get<std::string>();
}

bool Ledger::contains(const std::string& digest) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Json& entry) { return entry.at("digest") == digest; });
}

std::string Ledger::text() const {
  std::string lines;
  for (const Json& entry : entries_) lines += entry.dump() + "\n";
  return lines;
}

const Json* Ledger::last_with(const std::string& key) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const Json& entry) { return entry.contains(key); });
  return found == entries_.rend() ? nullptr : &*found;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> out{};
  std::strftime(out.data(), out.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return out.data();
}

}  // namespace pumice
