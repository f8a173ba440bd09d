#include "pumice/index/release_bounds.h"

#include <array>
#include <cstdio>
#include <map>

#include "pumice/core/error.h"

namespace pumice {
namespace {

using Json = Ledger::Json;

ReleaseBound bound_of(const Json& value, const std::string& reason) {
  if (value.is_number()) return {.nats = value.get<double>()};
  return {.kind = value == "infinite" ? ReleaseBound::Kind::infinite : ReleaseBound::Kind::unknown,
          .reason = reason};
}

bool larger(const ReleaseBound& left, const ReleaseBound& right) {
  if (left.kind != right.kind) return left.kind == ReleaseBound::Kind::infinite;
  return left.nats > right.nats;
}

// Before any audit: nothing is known, unless there is nothing to hide behind.
ReleaseBound unaudited(const Json& entry) {
  const std::string name = text("release ", entry.at("request").get<std::int64_t>());
  if (entry.at("noise").is_null()) {
    return {.kind = ReleaseBound::Kind::infinite, .reason = name + " has no noise"};
  }
  if (!entry.at("noise").value("private", true)) {
    return {.kind = ReleaseBound::Kind::infinite,
            .reason = name + " has noise that can be repeated"};
  }
  return {.kind = ReleaseBound::Kind::unknown, .reason = name + " was not audited"};
}

// One readout of an audit, as it may stand in the ledger.
Json readout_value(const Record& audit, const std::string& id) {
  for (const auto& readout : audit.content.at("readouts")) {
    if (readout.at("id") != id) continue;
    const auto& value = readout.at("value");
    if (value.is_number()) return value.get<double>();
    return value.get<std::string>();
  }
  return "unknown";
}

const Json& release_of(const Ledger& ledger, const Record& audit,
                       std::optional<std::int64_t> request) {
  const Json* found = nullptr;
  for (const Json& entry : ledger.entries()) {
    if (entry.at("kind") != "request") continue;
    if (entry.at("released") == audit.content.at("model").get<std::string>()) found = &entry;
  }
  if (!found) fail("audit: its model is no release of this index, must be one of the ledger's");
  if (request && found->at("request") != *request) {
    fail("audit: its model is the release of request ", found->at("request").get<std::int64_t>(),
         ", not of ", *request);
  }
  return *found;
}

void check_noise(const Json& release, const nlohmann::json& assumed) {
  const auto& noise = release.at("noise");
  const auto name = [](const auto& json) {
    return json.is_null() ? std::string("none")
                          : text(json.at("scale").template get<double>(), " (",
                                 json.at("shape").template get<std::string>(), ")");
  };
  if (name(noise) != name(assumed)) {
    fail("audit: made for noise ", name(assumed), ", the release has ", name(noise),
         "; must be the same");
  }
}

}  // namespace

ReleaseBound& ReleaseBound::operator+=(const ReleaseBound& other) {
  nats += other.nats;
  const bool worse = kind != Kind::infinite && other.kind != Kind::finite &&
                     (kind == Kind::finite || other.kind == Kind::infinite);
  if (worse) {
    kind = other.kind;
    reason = other.reason;
  }
  return *this;
}

std::string ReleaseBound::text() const {
  if (kind != Kind::finite) {
    return pumice::text(kind == Kind::infinite ? "infinite" : "unknown", " (", reason, ")");
  }
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.4g nats", nats);
  return out.data();
}

nlohmann::json to_json(const ReleaseBound& bound) {
  if (bound.kind == ReleaseBound::Kind::finite) return {{"nats", bound.nats}};
  return {{"nats", bound.kind == ReleaseBound::Kind::infinite ? "infinite" : "unknown"},
          {"reason", bound.reason}};
}

ReleaseBounds release_bounds(const Ledger& ledger) {
  ReleaseBounds bounds;
  std::map<std::int64_t, bool> audited;
  std::int64_t point = 0;
  for (const Json& entry : ledger.entries()) {
    if (entry.at("kind") == "refresh") ++point;
    if (entry.at("kind") == "request") {
      bounds.releases.push_back({.request = entry.at("request"),
                                 .point = point,
                                 .white_box = unaudited(entry),
                                 .black_box = unaudited(entry)});
    }
    if (entry.at("kind") != "bound") continue;
    const auto number = entry.at("request").get<std::int64_t>();
    Release& release = bounds.releases.at(static_cast<std::size_t>(number - 1));
    const bool first = !audited[number];
    audited[number] = true;
    const auto take = [&](const char* key, ReleaseBound& place) {
      const ReleaseBound found = bound_of(entry.at(key), text("by the audit of release ", number));
      if (place.kind == ReleaseBound::Kind::infinite) return;
      if (first || larger(found, place)) place = found;
    };
    take("white_box", release.white_box);
    take("black_box", release.black_box);
  }
  for (std::size_t i = bounds.releases.size(); i-- > 0;) {
    Release& release = bounds.releases[i];
    bounds.white_box += release.white_box;
    bounds.black_box += release.black_box;
    release.white_box_since = release.white_box;
    release.black_box_since = release.black_box;
    if (i + 1 < bounds.releases.size() && bounds.releases[i + 1].point == release.point) {
      release.white_box_since += bounds.releases[i + 1].white_box_since;
      release.black_box_since += bounds.releases[i + 1].black_box_since;
    }
  }
  return bounds;
}

Json bound_entry(const Ledger& ledger, const Record& audit, const std::string& audit_digest,
                 std::optional<std::int64_t> request) {
  if (audit.kind != "audit") {
    fail("audit: a record of kind '", audit.kind, "', must be 'audit' (pumice audit --record)");
  }
  try {
    const Json& release = release_of(ledger, audit, request);
    const auto& content = audit.content;
    const auto retained =
        content.at("examples").get<std::int64_t>() - content.at("cohort_size").get<std::int64_t>();
    if (retained != release.at("retained").get<std::int64_t>()) {
      fail("audit: compared with models trained on ", retained, " examples, must be the ",
           release.at("retained").get<std::int64_t>(),
           " that were left after that request (its cohort: everything forgotten up to then)");
    }
    check_noise(release, content.at("noise"));
    if (content.at("references").empty()) {
      fail("audit: compared with no retrained model, so it bounds nothing; must have at least one");
    }
    const Json white_box = readout_value(audit, "white_box");
    if (white_box == "unknown")
      fail("audit: it holds no bound, must be made with the group 'bounds'");
    return {{"request", release.at("request")},
            {"white_box", white_box},
            {"black_box", readout_value(audit, "black_box_cohort")},
            {"retrained", content.at("references").size()},
            {"mean_known",
             !content.at("noise").is_null() && content.at("noise").value("mean_known", false)},
            {"audit", audit_digest}};
  } catch (const nlohmann::json::exception& reason) {
    fail("audit: a part of the record is missing, ", reason.what());
  }
}

}  // namespace pumice
