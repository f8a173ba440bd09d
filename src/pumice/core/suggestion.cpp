#include "pumice/core/suggestion.h"

#include <algorithm>
#include <numeric>

namespace pumice {
namespace {

std::size_t edit_distance(const std::string& left, const std::string& right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t replaced = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above + 1, row[j - 1] + 1});
      diagonal = above;
    }
  }
  return row[right.size()];
}

}  // namespace

std::optional<std::string> closest(const std::string& word,
                                   const std::vector<std::string>& candidates) {
  std::size_t best = std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> nearest;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best || (distance == best && !nearest)) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> nearest = closest(word, candidates);
  return nearest ? ", did you mean '" + *nearest + "'?" : "";
}

}  // namespace pumice
