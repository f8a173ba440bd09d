// What the releases of an index can tell together: their bounds add up.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/index/ledger.h"
#include "pumice/record/record.h"

namespace pumice {

// A bound in nats, or why there is none. Without noise it is infinite, without an audit unknown.
struct ReleaseBound {
  enum class Kind { finite, infinite, unknown };
  Kind kind = Kind::finite;
  double nats = 0;
  std::string reason = {};  // unless finite

  // The sum: infinite if one is, else unknown if one is.
  ReleaseBound& operator+=(const ReleaseBound& other);
  std::string text() const;  // "12.3 nats", "infinite (…)", "unknown (…)"
};
nlohmann::json to_json(const ReleaseBound& bound);

// White-box: for whoever collects the weights of every release. Black-box: for whoever asks each
// release one question about an example of the cohort.
struct Release {
  std::int64_t request = 0;
  std::int64_t point = 0;  // how often the index had been refreshed before
  ReleaseBound white_box, black_box;
  // About the examples of this request: this release and the later ones from the same point of
  // linearisation. Releases after a refresh are computed from the last of these and from the
  // retained data, and so tell nothing new about whoever was forgotten before (no computation adds
  // information).
  ReleaseBound white_box_since = {}, black_box_since = {};
};

struct ReleaseBounds {
  std::vector<Release> releases;
  ReleaseBound white_box, black_box;  // over all releases
};

// The noise of independent draws hides each release from the others: the divergence of all of them
// together from those of retrained models is the sum of their own. Of several audits of one release
// the largest bound counts.
ReleaseBounds release_bounds(const Ledger& ledger);

// What belongs into the ledger for the audit of a release: {"request", "white_box", "black_box",
// "retrained", "mean_known", "audit"}. Throws Error unless the audit is of a release in the ledger
// (of number `request`, if it is given), with its noise, and against its retained set.
Ledger::Json bound_entry(const Ledger& ledger, const Record& audit, const std::string& audit_digest,
                         std::optional<std::int64_t> request);

}  // namespace pumice
