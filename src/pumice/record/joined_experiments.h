// Experiments whose seeds were run apart (on several machines, or one after the other) as one.
#pragma once

#include <optional>
#include <vector>

#include "pumice/record/record.h"

namespace pumice {

// One record with the runs of both, by seed and cohort, if both are experiments of one protocol:
// the same text apart from its `seeds` line, so that everything but the seeds is the same. Nothing
// if they are not. Seconds are added; where revision, command, machine or threads differ, the
// joined record holds both, "A; B". Throws Error if a run stands in both.
std::optional<Record> joined(const Record& first, const Record& second);

}  // namespace pumice
