#include "pumice/core/suggestion.h"

#include <algorithm>

namespace pumice {
namespace {

// Insertions, deletions, replacements and swaps of neighbours, one each.
std::size_t edit_distance(const std::string& left, const std::string& right) {
  const std::size_t width = right.size() + 1;
  std::vector<std::size_t> cost((left.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= left.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= right.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (left[i - 1] == right[j - 1] ? 0 : 1);
      at(i, j) = std::min({replaced, at(i - 1, j) + 1, at(i, j - 1) + 1});
      const bool swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(left.size(), right.size());
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
