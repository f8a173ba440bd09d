#include "pumice/report/record_tables.h"

#include <algorithm>
#include <array>
#include <map>

#include "pumice/core/error.h"
#include "pumice/report/subject.h"

namespace pumice::report {
namespace {

ReportCell number_cell(const Json& json, const std::string& unit = {}) {
  return {.text = number_text(number_of(json), unit), .number = true};
}

ReportTable error_table(const Json& content) {
  ReportTable table{.id = "errors",
                    .title = "Errors before and after",
                    .caption = "Share of wrong answers, and mean loss below it.",
                    .columns = {{"model"},
                                {"cohort", "the examples to be forgotten"},
                                {"retained", "the other training examples"},
                                {"test", "examples that no training saw"}},
                    .rows = {}};
  const auto add = [&](const std::string& name, const Json& errors) {
    ReportRow row{.cells = {{.text = name}}};
    for (const char* set : {"cohort", "retain", "test"}) {
      const Json& one = part(errors, set);
      ReportCell cell{.text = "–", .number = true};
      if (!one.empty()) {
        cell = number_cell(one.at("error"), "share");
        cell.detail = "loss " + number_text(number_of(one.at("loss")));
      }
      row.cells.push_back(cell);
    }
    table.rows.push_back(row);
  };
  add("before", part(content, "errors_before"));
  for (const Json& method : content.at("methods")) {
    if (method.contains("errors")) add(string_of(method, "method"), method.at("errors"));
  }
  return table;
}

struct SummaryLine {
  const char* key;
  const char* name;
  const char* meaning;
};
constexpr std::array<SummaryLine, 11> summary_lines{{
    {"shift_norm", "length of the shift", "How far the weights moved."},
    {"displacement_norm", "distance from the start", "How far training had moved them."},
    {"direction_norm", "length of the direction", "The linear model's shift, before scaling."},
    {"scale", "scale", "By which the direction was multiplied."},
    {"ridge", "ridge", "The weight decay that the solve used."},
    {"relative_residual", "relative residual", "How exactly the linear system was solved."},
    {"condition_estimate", "condition, at least", "How hard the linear system was to solve."},
    {"iterations", "iterations", "Of the solver."},
    {"epochs", "epochs", "Of training."},
    {"seconds", "seconds", "Time that the method took."},
    {"epoch_equivalents", "work in epochs", "The same work as this many epochs of training."},
}};

ReportTable method_table(const Json& content) {
  ReportTable table{.id = "methods",
                    .title = "What was done",
                    .caption = "The numbers that were used.",
                    .columns = {{"number"}},
                    .rows = {}};
  for (const Json& method : content.at("methods"))
    table.columns.push_back({string_of(method, "method")});
  const auto add = [&](const std::string& name, const std::string& meaning, const auto& cell_of) {
    ReportRow row{.definition = meaning, .cells = {{.text = name}}};
    bool any = false;
    for (const Json& method : content.at("methods")) {
      row.cells.push_back(cell_of(method));
      any = any || row.cells.back().text != "–";
    }
    if (any) table.rows.push_back(row);
  };
  add("succeeded", "Whether the method's numerics reached what they must.", [](const Json& method) {
    return ReportCell{.text = method.value("converged", true) ? "yes" : "no",
                      .detail = string_of(method, "explanation")};
  });
  for (const SummaryLine& line : summary_lines) {
    add(line.name, line.meaning, [&](const Json& method) {
      return ReportCell{
          .text = method.contains(line.key) ? number_text(number_of(method.at(line.key))) : "–"};
    });
  }
  for (const auto& [key, name, meaning] :
       {std::array{"scale_rule", "scale from", "Where the scale came from."},
        {"curvature", "curvature", "Of the loss in the linear model."},
        {"linearized_at", "linearised at", "Where the linear model touches the network."},
        {"solver", "solver", "How the linear system was solved."}}) {
    add(name, meaning,
        [&](const Json& method) { return ReportCell{.text = string_of(method, key, "–")}; });
  }
  add("noise scale", "Of the noise that was added to the weights.", [](const Json& method) {
    const Json& noise = part(method, "noise");
    if (noise.empty()) return ReportCell{.text = "none"};
    ReportCell cell{.text = number_text(number_of(noise.at("scale")))};
    cell.detail = noise.value("private", true) ? "shape " + string_of(noise, "shape")
                                               : "repeatable: not private";
    return cell;
  });
  return table;
}

std::vector<ReportTable> examination_tables(const Json& content) {
  ReportTable table{.id = "examination",
                    .title = "The examination beforehand",
                    .caption = "Does the model fit the assumptions that forgetting rests on?",
                    .columns = {{"check"}, {"advice"}, {"what was found"}},
                    .rows = {}};
  for (const Json& check : part(content, "applicability").value("checks", Json::array())) {
    table.rows.push_back({.cells = {{.text = string_of(check, "name")},
                                    {.text = string_of(check, "advice")},
                                    {.text = string_of(check, "sentence")}}});
  }
  if (table.rows.empty()) return {};
  return {table};
}

// Parts of a record that are told as they are, in the order of the page.
constexpr std::array<std::array<const char*, 2>, 22> repeated{{
    {"request", "request"},
    {"data_request", "data request"},
    {"data", "data"},
    {"model", "model"},
    {"original", "original model"},
    {"start", "start"},
    {"references", "retrained models"},
    {"recipe", "recipe"},
    {"weight_decay", "weight decay"},
    {"loss", "loss"},
    {"decay_centre", "weight decay pulls to"},
    {"noise", "noise"},
    {"noise_seed", "seed of the noise"},
    {"seed", "seed"},
    {"order_seed", "seed of the order"},
    {"cohort_size", "cohort size"},
    {"cohort_digest", "cohort (keyed digest)"},
    {"examples", "training examples"},
    {"test_examples", "test examples"},
    {"threads", "threads"},
    {"machine", "machine"},
    {"seconds", "seconds"},
}};

void add_text(std::vector<RepeatItem>& items, const std::string& name, const Json& content,
              const std::string& key) {
  const Json& value = part(content, key);
  if (value.is_object() && value.empty()) return;
  std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
  if (value.is_object()) {
    shown.clear();
    for (const auto& [inner, each] : value.items()) {
      shown += text(shown.empty() ? "" : "; ", inner, ": ",
                    each.is_string() ? each.get<std::string>() : each.dump());
    }
  }
  items.push_back({.name = name, .value = shown});
}

}  // namespace

std::vector<ReportTable> forget_tables(const Json& content) {
  std::vector<ReportTable> tables{error_table(content), method_table(content)};
  for (const ReportTable& table : examination_tables(content)) tables.push_back(table);
  return tables;
}

std::vector<ReportTable> ablation_tables(const Json& content) {
  constexpr std::array<std::array<const char*, 3>, 6> columns{
      {{"cohort_error", "error on the cohort", "share"},
       {"retain_error", "error on retained", "share"},
       {"test_error", "error on test", "share"},
       {"distance_cohort", "distance on the cohort", ""},
       {"cosine", "cosine to retrained", ""},
       {"shift_norm", "length of the shift", ""}}};
  std::vector<std::string> names;
  std::map<std::string, std::array<Spread, columns.size()>> values;
  for (const Json& run : content.at("runs")) {
    for (const Json& ablation : run.value("ablations", Json::array())) {
      const std::string name = ablation.at("name");
      if (!values.contains(name)) names.push_back(name);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (ablation.contains(columns[i][0]))
          values[name][i].add(number_of(ablation.at(columns[i][0])));
      }
    }
  }
  if (names.empty()) return {};
  ReportTable table{
      .id = "ablations",
      .title = "Variants of the paper's scrub",
      .caption =
          "H: curvature of the loss or identity; where the network is linearised; with or without "
          "the trapezium. Mean ± standard deviation over runs.",
      .columns = {{"variant"}},
      .rows = {}};
  for (const auto& column : columns) table.columns.push_back({column[1]});
  for (const std::string& name : names) {
    ReportRow row{.cells = {{.text = name}}};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      row.cells.push_back({.text = spread_text(values[name][i], columns[i][2]), .number = true});
    }
    table.rows.push_back(row);
  }
  return {table};
}

std::vector<RepeatItem> repeat_items(const Record& record) {
  const Json& content = record.content;
  std::vector<RepeatItem> items;
  if (content.contains("command")) {
    items.push_back({.name = "command", .value = string_of(content, "command"), .block = true});
  }
  if (content.contains("protocol")) {
    items.push_back({.name = "protocol", .value = string_of(content, "protocol"), .block = true});
  }
  add_text(items, "made by", content, "created_by");
  add_text(items, "revision", content, "revision");
  for (const auto& [key, name] : repeated) {
    add_text(items, name, content, key);
  }
  for (const Json& run : content.value("runs", Json::array())) {
    items.push_back({.name = run_name(run, content),
                     .value = text("data ", string_of(run, "data_digest", "–"), "; cohort ",
                                   string_of(run, "cohort_digest", "–"))});
  }
  return items;
}

}  // namespace pumice::report
