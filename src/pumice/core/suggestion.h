// "Did you mean": the nearest known word to a misspelt one.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pumice {

// The candidate with the smallest edit distance, if that is at most a third of the word's length
// (at least 1, so that a single slip is always forgiven).
std::optional<std::string> closest(const std::string& word,
                                   const std::vector<std::string>& candidates);

// ", did you mean 'x'?" or nothing.
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace pumice
