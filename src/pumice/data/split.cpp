#include "pumice/data/split.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/data/selection.h"

namespace pumice {
namespace {

std::string first_few(const std::vector<std::string>& ids) {
  const std::size_t shown = std::min<std::size_t>(3, ids.size());
  std::string list;
  for (std::size_t i = 0; i < shown; ++i) list += (i ? ", '" : "'") + ids[i] + "'";
  if (ids.size() > shown) list += ", …";
  return list;
}

std::string count_of(std::size_t count) {
  return text(count, count == 1 ? " id" : " ids");
}

}  // namespace

Split make_split(const Dataset& train, const Dataset& test,
                 const std::vector<std::string>& cohort_ids) {
  if (cohort_ids.empty()) fail("cohort: empty, must name at least one training example");

  std::unordered_map<std::string, std::int64_t> position_of;
  for (std::int64_t i = 0; i < train.size(); ++i) {
    position_of.emplace(train.ids[static_cast<std::size_t>(i)], i);
  }
  std::vector<std::string> shared;
  for (const std::string& id : test.ids) {
    if (position_of.contains(id)) shared.push_back(id);
  }
  if (!shared.empty()) {
    fail("test: ", count_of(shared.size()), " also among the training examples (",
         first_few(shared), "), must be disjoint");
  }

  std::vector<std::string> unknown;
  std::vector<std::string> repeated;
  std::unordered_set<std::string> seen;
  std::vector<char> in_cohort(static_cast<std::size_t>(train.size()), 0);
  for (const std::string& id : cohort_ids) {
    const auto found = position_of.find(id);
    if (found == position_of.end()) {
      unknown.push_back(id);
    } else if (!seen.insert(id).second) {
      repeated.push_back(id);
    } else {
      in_cohort[static_cast<std::size_t>(found->second)] = 1;
    }
  }
  if (!unknown.empty()) {
    fail("cohort: ", count_of(unknown.size()), " not among the ", train.size(),
         " training examples (", first_few(unknown), ")");
  }
  if (!repeated.empty()) {
    fail("cohort: ", count_of(repeated.size()), " repeated (", first_few(repeated),
         "), each must be named once");
  }

  Split split;
  for (std::int64_t i = 0; i < train.size(); ++i) {
    (in_cohort[static_cast<std::size_t>(i)] ? split.cohort : split.retain).push_back(i);
  }
  return split;
}

std::vector<std::string> read_ids(const std::filesystem::path& path) {
  std::istringstream in(read_file(path));
  std::vector<std::string> ids;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) ids.push_back(line);
  }
  if (ids.empty()) fail(path.string(), ": no ids, must name one a line");
  return ids;
}

void write_ids(const std::filesystem::path& path, const std::vector<std::string>& ids) {
  std::string content;
  for (const std::string& id : ids) content += id + "\n";
  write_file_atomically(path, content);
}

std::vector<std::string> draw_cohort(const Dataset& train, const std::string& forget_class,
                                     std::int64_t count, std::uint64_t seed) {
  const std::vector<std::int64_t> chosen = parse_classes(forget_class, train.classes);
  if (chosen.size() != 1) {
    fail("forget-class: '", forget_class, "' names ", chosen.size(), " classes, must name one");
  }
  const auto labels = train.labels.accessor<std::int64_t, 1>();
  std::vector<std::int64_t> members;
  for (std::int64_t i = 0; i < train.size(); ++i) {
    if (labels[i] == chosen.front()) members.push_back(i);
  }
  const std::int64_t available = static_cast<std::int64_t>(members.size());
  if (count < 1 || count > available) {
    fail("forget-count: ", count, ", must be in 1 … ", available, ", the size of class '",
         forget_class, "'");
  }
  std::vector<std::int64_t> order = RandomStream(seed, "cohort").permutation(available);
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  std::vector<std::string> ids;
  for (const std::int64_t k : order) {
    ids.push_back(train.ids[static_cast<std::size_t>(members[static_cast<std::size_t>(k)])]);
  }
  return ids;
}

}  // namespace pumice
