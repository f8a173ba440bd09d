#include "pumice/data/selection.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <sstream>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/core/suggestion.h"

namespace pumice {
namespace {

std::optional<std::int64_t> parse_label(const std::string& word) {
  std::int64_t value = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || reason != std::errc() || end != word.data() + word.size() || value < 0)
    return {};
  return value;
}

std::int64_t position_of_label(std::int64_t label, const ClassTable& table) {
  const auto& labels = table.original_labels;
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (found == labels.end()) {
    const auto [smallest, largest] = std::minmax_element(labels.begin(), labels.end());
    fail("classes: no class ", label, ", labels here are in ", *smallest, " … ", *largest);
  }
  return found - labels.begin();
}

void add_classes(const std::string& word, const ClassTable& table, std::set<std::int64_t>& chosen) {
  const auto named = std::find(table.names.begin(), table.names.end(), word);
  if (named != table.names.end()) {
    chosen.insert(named - table.names.begin());
    return;
  }
  if (const auto label = parse_label(word)) {
    chosen.insert(position_of_label(*label, table));
    return;
  }
  const std::size_t dash = word.find('-');
  if (dash != std::string::npos) {
    const auto first = parse_label(word.substr(0, dash));
    const auto last = parse_label(word.substr(dash + 1));
    if (first && last) {
      if (*first > *last) fail("classes: '", word, "' runs backwards, must be FIRST-LAST");
      if (*last - *first > 1'000'000) fail("classes: '", word, "' is too long a range");
      for (std::int64_t label = *first; label <= *last; ++label) {
        chosen.insert(position_of_label(label, table));
      }
      return;
    }
  }
  fail("classes: '", word, "' is neither a label, a range FIRST-LAST nor a class name",
       suggestion(word, table.names));
}

ClassTable chosen_table(const ClassTable& table, const std::vector<std::int64_t>& chosen) {
  ClassTable result;
  for (const std::int64_t k : chosen) {
    result.names.push_back(table.names[static_cast<std::size_t>(k)]);
    result.original_labels.push_back(table.original_labels[static_cast<std::size_t>(k)]);
  }
  return result;
}

// Positions in the listing with their new labels, to be read as one dataset.
struct Draw {
  std::vector<std::pair<std::int64_t, std::int64_t>> examples;  // (position, new label)
};

Dataset read_draw(const DataSource& source, Part part, Draw draw, ClassTable classes) {
  std::sort(draw.examples.begin(), draw.examples.end());
  const Listing& listing = source.listing(part);
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> labels;
  Dataset dataset;
  for (const auto& [position, label] : draw.examples) {
    positions.push_back(position);
    labels.push_back(label);
    dataset.ids.push_back(listing.ids[static_cast<std::size_t>(position)]);
  }
  dataset.images = source.images(part, positions);
  dataset.labels = at::tensor(labels, at::kLong);
  dataset.classes = std::move(classes);
  check(dataset);
  return dataset;
}

void check_count(std::optional<std::int64_t> count, const char* name) {
  if (count && *count < 1) fail(name, ": ", *count, ", must be >= 1");
}

// A test set from elsewhere has its own table; its classes are matched by name.
std::vector<std::int64_t> matching_positions(const ClassTable& wanted,
                                             const ClassTable& available) {
  std::vector<std::int64_t> positions;
  for (const std::string& name : wanted.names) {
    const auto found = std::find(available.names.begin(), available.names.end(), name);
    if (found == available.names.end()) {
      fail("test: its classes do not include '", name, "', which is trained on");
    }
    positions.push_back(found - available.names.begin());
  }
  return positions;
}

}  // namespace

std::vector<std::int64_t> parse_classes(const std::string& classes, const ClassTable& table) {
  std::set<std::int64_t> chosen;
  std::istringstream words(classes);
  for (std::string word; std::getline(words, word, ',');) add_classes(word, table, chosen);
  if (chosen.empty()) fail("classes: '", classes, "' names no class");
  return {chosen.begin(), chosen.end()};
}

Selection select(const DataSource& source, const SelectionOptions& options,
                 const DataSource* test_source) {
  check_count(options.per_class, "per-class");
  check_count(options.test_per_class, "test-per-class");
  if (options.validation_per_class < 0) {
    fail("validation-per-class: ", options.validation_per_class, ", must be >= 0");
  }
  const ClassTable& table = source.classes();
  std::vector<std::int64_t> chosen;
  if (options.classes.empty()) {
    for (std::int64_t k = 0; k < table.size(); ++k) chosen.push_back(k);
  } else {
    chosen = parse_classes(options.classes, table);
  }
  const ClassTable classes = chosen_table(table, chosen);

  // The front `count` examples of the class's permutation (all but `spared` if none), and the back
  // ones.
  const auto draw_class = [&](Part part, const std::vector<std::int64_t>& members,
                              std::int64_t new_label, std::optional<std::int64_t> count,
                              std::int64_t spared, Draw& front, Draw* back) {
    const std::string& name = classes.names[static_cast<std::size_t>(new_label)];
    const auto available = static_cast<std::int64_t>(members.size());
    const std::int64_t taken = count.value_or(std::max<std::int64_t>(available - spared, 0));
    if (taken < 1 || spared > available || taken > available - spared) {
      fail(part_name(part), ": class '", name, "' has ", available, " examples, but ",
           std::max<std::int64_t>(taken, 1), spared ? text(" + ", spared, " for validation") : "",
           " are asked for");
    }
    const std::int64_t label = classes.original_labels[static_cast<std::size_t>(new_label)];
    RandomStream stream(options.seed, text("subset/", part_name(part), "/", label));
    const std::vector<std::int64_t> order = stream.permutation(available);
    for (std::int64_t i = 0; i < available; ++i) {
      const std::int64_t member =
          members[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
      if (i < taken) front.examples.emplace_back(member, new_label);
      if (back && i >= available - spared) back->examples.emplace_back(member, new_label);
    }
  };

  Selection selection;
  Draw train;
  Draw validation;
  const auto members = positions_by_class(source.listing(Part::train).labels, table.size());
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    draw_class(Part::train, members[static_cast<std::size_t>(chosen[k])],
               static_cast<std::int64_t>(k), options.per_class, options.validation_per_class, train,
               &validation);
  }
  selection.train = read_draw(source, Part::train, std::move(train), classes);
  if (!validation.examples.empty()) {
    selection.validation = read_draw(source, Part::train, std::move(validation), classes);
  }

  const DataSource& tested = test_source ? *test_source : source;
  const bool has_test_part = tested.listing(Part::test).size() > 0;
  if (!has_test_part && !test_source) {
    if (options.test_per_class)
      fail("test-per-class: ", *options.test_per_class,
           ", but this source has no test part; name one with --test");
    return selection;
  }
  const Part part = has_test_part ? Part::test : Part::train;
  const auto test_members =
      positions_by_class(tested.listing(part).labels, tested.classes().size());
  const std::vector<std::int64_t> test_classes = matching_positions(classes, tested.classes());
  Draw test;
  for (std::size_t k = 0; k < test_classes.size(); ++k) {
    draw_class(part, test_members[static_cast<std::size_t>(test_classes[k])],
               static_cast<std::int64_t>(k), options.test_per_class, 0, test, nullptr);
  }
  selection.test = read_draw(tested, part, std::move(test), classes);
  if (test_source) {
    // Two folders may both hold "cat/1.png": ids of a foreign test set say where they belong.
    for (std::string& id : selection.test.ids) {
      if (!id.starts_with("test/")) id = "test/" + id;
    }
  }
  return selection;
}

}  // namespace pumice
