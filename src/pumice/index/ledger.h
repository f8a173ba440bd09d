// The ledger of an index: what was asked, released and bounded, one JSON object a line, each with
// the digest of the one before.
//
// Whoever changes, removes or inserts a line breaks the chain from there on. A chain that was
// computed anew from the changed line to the end is whole again: against that helps only a digest
// that was noted elsewhere (contains()).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pumice {

// Every entry: "entry" (from 1), "when" (UTC), "kind", then what belongs to its kind
// (docs/requests.md), then "previous" (digest of the entry before; of the first: "none") and
// "digest" (BLAKE2b of the object's compact form without that key).
class Ledger {
 public:
  using Json = nlohmann::ordered_json;

  Ledger() = default;
  // Throws Error with `name` and the first line that is damaged: no JSON, not in the form that is
  // written here, out of sequence, or with a digest that does not fit.
  Ledger(const std::string& name, std::string_view content);

  // Adds an entry at the end; `content` is what belongs to its kind.
  void append(const std::string& kind, const Json& content);

  const std::vector<Json>& entries() const { return entries_; }
  std::string head() const;  // digest of the last entry, "none" if there is none
  bool contains(const std::string& digest) const;
  std::string text() const;  // all lines

  // The last entry that has this key, or none.
  const Json* last_with(const std::string& key) const;

 private:
  std::vector<Json> entries_;
};

// Now, as "2026-03-01T09:30:00Z".
std::string utc_now();

}  // namespace pumice
