// The one file that knows toml++.
#include "pumice/experiment/toml_reader.h"

#include <toml++/toml.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"

namespace pumice {

const NumberRule any_number{"must be finite", [](double value) { return std::isfinite(value); }};
const NumberRule positive{"must be > 0",
                          [](double value) { return value > 0 && std::isfinite(value); }};
const NumberRule not_negative{"must be >= 0",
                              [](double value) { return value >= 0 && std::isfinite(value); }};
const NumberRule a_share{"must be in [0, 1)", [](double value) { return value >= 0 && value < 1; }};

struct TomlTable::Node {
  std::shared_ptr<toml::table> whole;  // keeps the tree alive
  const toml::table* table = nullptr;
  std::string file, name;  // of the file; of this table, "" for the top one
  std::set<std::string> asked = {};

  const toml::node* find(const std::string& key) {
    asked.insert(key);
    return table->get(key);
  }
  std::string place(const toml::node& node) const {
    return text(file, ":", node.source().begin.line, ": ");
  }
};

namespace {

std::string value_text(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (const auto* value = node.as_string()) return "'" + value->get() + "'";
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) {
    char digits[32];  // the fewest that mean this number
    const auto end = std::to_chars(digits, digits + sizeof digits, value->get());
    return {digits, end.ptr};
  }
  return "a date or time";
}

std::optional<double> as_number(const toml::node& node) {
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_integer()) return static_cast<double>(value->get());
  return {};
}

void check_word(const std::string& place, const std::string& key, const std::string& word,
                const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  const std::string meant = suggestion(word, known);
  fail(place, key, " = '", word, "'",
       meant.empty() ? text(", must be one of ", list) : text(" is unknown", meant));
}

}  // namespace

TomlTable::TomlTable(std::shared_ptr<Node> node) : node_(std::move(node)) {}

TomlTable TomlTable::parse(const std::string& text, const std::string& file) {
  try {
    auto whole = std::make_shared<toml::table>(toml::parse(text, file));
    auto node = std::make_shared<Node>();
    node->whole = whole;
    node->table = whole.get();
    node->file = file;
    return TomlTable(node);
  } catch (const toml::parse_error& error) {
    fail(file, ":", error.source().begin.line, ": ", std::string(error.description()));
  }
}

void TomlTable::refuse(const std::string& key, const std::string& rule) const {
  const toml::node* node = node_->table->get(key);
  if (!node) refuse_table(text(key, " is missing, ", rule));
  fail(node_->place(*node), key, " = ", value_text(*node), ", ", rule);
}

void TomlTable::refuse_table(const std::string& sentence) const {
  const auto line = node_->table->source().begin.line;
  fail(node_->file, ":", line ? line : 1, ": ", node_->name.empty() ? "" : "[" + node_->name + "] ",
       sentence);
}

std::optional<std::string> TomlTable::string(const std::string& key) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const auto* value = node->as_string();
  if (!value) refuse(key, "must be text in quotes");
  if (value->get().empty()) refuse(key, "must not be empty");
  return value->get();
}

std::optional<bool> TomlTable::flag(const std::string& key) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const auto* value = node->as_boolean();
  if (!value) refuse(key, "must be true or false");
  return value->get();
}

std::optional<double> TomlTable::number(const std::string& key, const NumberRule& rule) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const std::optional<double> value = as_number(*node);
  if (!value) refuse(key, "must be a number");
  if (!rule.holds(*value)) refuse(key, rule.sentence);
  return value;
}

std::optional<std::int64_t> TomlTable::whole(const std::string& key, std::int64_t at_least) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const auto* value = node->as_integer();
  if (!value) refuse(key, "must be a whole number");
  if (value->get() < at_least) refuse(key, text("must be >= ", at_least));
  return value->get();
}

std::optional<std::uint64_t> TomlTable::seed(const std::string& key) {
  const std::optional<std::int64_t> value = whole(key, 0);
  return value ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<std::string> TomlTable::word(const std::string& key,
                                           const std::vector<std::string>& known) {
  const std::optional<std::string> value = string(key);
  if (value) check_word(node_->place(*node_->table->get(key)), key, *value, known);
  return value;
}

std::optional<std::string> TomlTable::label(const std::string& key) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  if (const auto* value = node->as_integer()) return std::to_string(value->get());
  return string(key);
}

std::optional<std::vector<double>> TomlTable::numbers(const std::string& key,
                                                      const NumberRule& rule) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const toml::array* list = node->as_array();
  if (!list) refuse(key, "must be a list of numbers");
  std::vector<double> values;
  for (const toml::node& one : *list) {
    const std::optional<double> value = as_number(one);
    if (!value) fail(node_->place(one), key, ": ", value_text(one), ", must be a number");
    if (!rule.holds(*value)) {
      fail(node_->place(one), key, ": ", value_text(one), ", ", rule.sentence);
    }
    values.push_back(*value);
  }
  return values;
}

std::optional<std::vector<std::uint64_t>> TomlTable::seeds(const std::string& key) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const toml::array* list = node->as_array();
  if (!list || list->empty()) refuse(key, "must be a list of whole numbers");
  std::vector<std::uint64_t> values;
  for (const toml::node& one : *list) {
    const auto* value = one.as_integer();
    if (!value || value->get() < 0) {
      fail(node_->place(one), key, ": ", value_text(one), ", must be a whole number >= 0");
    }
    const auto seed = static_cast<std::uint64_t>(value->get());
    if (std::find(values.begin(), values.end(), seed) != values.end()) {
      fail(node_->place(one), key, ": ", seed, " is there twice");
    }
    values.push_back(seed);
  }
  return values;
}

std::optional<std::vector<std::string>> TomlTable::words(const std::string& key,
                                                         const std::vector<std::string>& known) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const toml::array* list = node->as_array();
  if (!list) refuse(key, "must be a list of words");
  std::vector<std::string> values;
  for (const toml::node& one : *list) {
    const auto* value = one.as_string();
    if (!value) fail(node_->place(one), key, ": ", value_text(one), ", must be text in quotes");
    check_word(node_->place(one), key, value->get(), known);
    values.push_back(value->get());
  }
  return values;
}

std::optional<TomlTable> TomlTable::table(const std::string& key) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const toml::table* table = node->as_table();
  if (!table) refuse(key, text("must be a table, [", key, "]"));
  return TomlTable(
      std::make_shared<Node>(Node{.whole = node_->whole,
                                  .table = table,
                                  .file = node_->file,
                                  .name = node_->name.empty() ? key : node_->name + "." + key}));
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) {
  const toml::node* node = node_->find(key);
  if (!node) return {};
  const toml::array* list = node->as_array();
  if (!list || !list->is_homogeneous(toml::node_type::table)) {
    refuse(key, text("must be tables, each [[", key, "]]"));
  }
  std::vector<TomlTable> tables;
  for (const toml::node& one : *list) {
    tables.push_back(TomlTable(std::make_shared<Node>(
        Node{.whole = node_->whole, .table = one.as_table(), .file = node_->file, .name = key})));
  }
  return tables;
}

void TomlTable::finish() const {
  const std::vector<std::string> known(node_->asked.begin(), node_->asked.end());
  for (const auto& [key, node] : *node_->table) {
    const std::string name(key.str());
    if (node_->asked.contains(name)) continue;
    fail(node_->file, ":", key.source().begin.line, ": unknown key '", name, "'",
         node_->name.empty() ? "" : text(" in [", node_->name, "]"), suggestion(name, known));
  }
}

}  // namespace pumice
