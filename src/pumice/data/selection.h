// Which part of a source is used: the same options, with the same meaning, in every command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/data_source.h"
#include "pumice/data/dataset.h"

namespace pumice {

// Examples are drawn class by class from the streams "subset/<part>/<original label>": a
// permutation of the class, of which training takes the front and validation the back. So another
// choice of classes, or a larger per_class, keeps what was drawn before. Within a part, examples
// stand in the order of the source.
struct SelectionOptions {
  std::string classes = {};                    // "" = all; "0-4", "0,2,5-7", "cat,dog"
  std::optional<std::int64_t> per_class = {};  // training examples a class; none: all that are left
  std::optional<std::int64_t> test_per_class = {};  // none: all
  std::int64_t validation_per_class = 0;  // taken from the training part, disjoint from training
  std::uint64_t seed = 1;
};

struct Selection {
  Dataset train;
  Dataset validation;  // empty unless asked for
  Dataset test;        // empty if the source has none
};

// `test_source`: where the test examples come from if not from `source`: its test part, or all of
// its training part if it has none. Throws Error when a class is unknown or has too few examples.
Selection select(const DataSource& source, const SelectionOptions& options,
                 const DataSource* test_source = nullptr);

// "0-4,7" or names to positions in the table, ascending. A name that matches exactly wins over a
// number.
std::vector<std::int64_t> parse_classes(const std::string& classes, const ClassTable& table);

}  // namespace pumice
