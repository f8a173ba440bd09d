// Cohort and retain set: a partition of the training examples by id.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pumice/data/dataset.h"

namespace pumice {

struct Split {
  std::vector<std::int64_t> cohort;  // positions in the training set, ascending: Df
  std::vector<std::int64_t> retain;  // the others, ascending: Dr
};

// Throws Error, naming the first few and their number, if an id is unknown in `train` or repeated,
// if the cohort is empty, or if `train` and `test` share an id.
Split make_split(const Dataset& train, const Dataset& test,
                 const std::vector<std::string>& cohort_ids);

// One id a line; empty lines are skipped. `path` is named in errors. No id at all is an error.
std::vector<std::string> read_ids(const std::filesystem::path& path);
void write_ids(const std::filesystem::path& path, const std::vector<std::string>& ids);

// `count` ids of one class (an original label or a name), from the stream "cohort", sorted as in
// `train`.
std::vector<std::string> draw_cohort(const Dataset& train, const std::string& forget_class,
                                     std::int64_t count, std::uint64_t seed);

}  // namespace pumice
