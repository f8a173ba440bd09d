// A TOML file whose every key has to be known: typed values, errors with file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pumice {

// What a number must satisfy.
struct NumberRule {
  std::string sentence;  // "must be >= 0"
  bool (*holds)(double value);
};
extern const NumberRule any_number, positive, not_negative, a_share;

// One table of the file. A value that is asked for counts as known; finish() then refuses the keys
// that nobody asked for. Errors: "demo.toml:12: ridge = -0.1, must be >= 0".
class TomlTable {
 public:
  // Throws Error with file and line for text that is not TOML.
  static TomlTable parse(const std::string& text, const std::string& file);

  std::optional<std::string> string(const std::string& key);
  std::optional<bool> flag(const std::string& key);
  std::optional<double> number(const std::string& key, const NumberRule& rule = any_number);
  std::optional<std::int64_t> whole(const std::string& key, std::int64_t at_least);
  std::optional<std::uint64_t> seed(const std::string& key);
  // One of these words; a misspelt one gets a suggestion.
  std::optional<std::string> word(const std::string& key, const std::vector<std::string>& known);
  // A word or a number, as text: class labels.
  std::optional<std::string> label(const std::string& key);
  std::optional<std::vector<double>> numbers(const std::string& key, const NumberRule& rule);
  std::optional<std::vector<std::uint64_t>> seeds(const std::string& key);
  std::optional<std::vector<std::string>> words(const std::string& key,
                                                const std::vector<std::string>& known);
  std::optional<TomlTable> table(const std::string& key);
  std::vector<TomlTable> tables(const std::string& key);  // [[key]]; empty if there are none

  // What is missing or contradicts something else.
  [[noreturn]] void refuse(const std::string& key, const std::string& rule) const;
  [[noreturn]] void refuse_table(const std::string& sentence) const;
  void finish() const;

 private:
  struct Node;  // keeps toml++ out of this header
  TomlTable(std::shared_ptr<Node> node);
  std::shared_ptr<Node> node_;
};

}  // namespace pumice
