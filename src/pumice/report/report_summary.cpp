#include "pumice/report/report_summary.h"

#include <algorithm>
#include <array>

#include "pumice/core/error.h"
#include "pumice/report/limits.h"
#include "pumice/report/readout_table.h"
#include "pumice/report/subject.h"

namespace pumice::report {
namespace {

std::string share_text(double share) {
  return number_text(share, "share");
}

std::string plural(std::size_t count, const std::string& one) {
  return text(count, " ", one, count == 1 ? "" : "s");
}

void say_once(std::vector<std::string>& sentences, const std::string& sentence) {
  if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
    sentences.push_back(sentence);
  }
}

std::string data_name(const Json& content) {
  const std::string source = string_of(part(content, "data_request"), "source");
  return source.empty() ? "" : " (data: " + source + ")";
}

std::string error_change(const Json& before, const Json& after, const char* set, const char* name) {
  if (!before.contains(set) || !after.contains(set)) return {};
  return text(", on ", name, " ", share_text(number_of(before.at(set).at("error"))), " before and ",
              share_text(number_of(after.at(set).at("error"))), " after");
}

void tell_forget(const Json& content, ReportSummary& summary) {
  say_once(summary.asked, text("To remove what a model learned from ",
                               content.at("cohort_size").get<std::int64_t>(), " of its ",
                               content.at("examples").get<std::int64_t>(), " training examples",
                               data_name(content), "."));
  for (const Json& method : content.at("methods")) {
    const std::string name = string_of(method, "method");
    if (!method.value("converged", true)) {
      say_once(summary.done, text("Method ", name, " did not succeed: ",
                                  string_of(method, "explanation", "no reason is recorded"), "."));
      continue;
    }
    const Json& noise = part(method, "noise");
    const bool moved = number_of(method.at("shift_norm")) > 0;
    std::string sentence =
        text("Method ", name,
             moved ? " changed the model's weights" : " left the model's weights where they were");
    sentence += noise.empty()
                    ? (moved ? ", without noise" : ", without noise: nothing was removed")
                    : text(" and added noise of scale ", number_text(number_of(noise.at("scale"))));
    const Json &before = part(content, "errors_before"), &after = part(method, "errors");
    const std::string cohort = error_change(before, after, "cohort", "the cohort");
    if (!cohort.empty()) {
      sentence += text(". Wrong answers", cohort.substr(1),
                       error_change(before, after, "test", "test examples"));
    }
    say_once(summary.done, sentence + ".");
  }
}

// The method of a forget record that wrote the model with this digest; empty if none did.
std::string writer_of(const std::string& model, const std::vector<ReportSource>& sources) {
  for (const ReportSource& source : sources) {
    if (source.record.kind != "forget") continue;
    for (const Json& method : source.record.content.at("methods")) {
      if (!model.empty() && string_of(method, "model") == model) return string_of(method, "method");
    }
  }
  return {};
}

void tell_audit(const Json& content, const std::vector<ReportSource>& sources,
                ReportSummary& summary) {
  say_once(summary.asked,
           text("To measure what the model ", content.at("subject").get<std::string>(),
                " still shows of ", content.at("cohort_size").get<std::int64_t>(),
                " training examples that it should not know", data_name(content), "."));
  const std::size_t references = content.value("references", Json::array()).size();
  say_once(summary.done,
           text(plural(content.at("readouts").size(), "measurement"),
                " of the model were compared with ",
                references ? plural(references, "model") + " trained anew without those examples."
                           : "nothing: no model trained without those examples was given."));
  const std::string writer = writer_of(string_of(content, "model"), sources);
  if (!writer.empty()) {
    say_once(summary.done,
             text("The model that was measured is the one that method ", writer, " wrote."));
  }
}

void tell_experiment(const Json& content, ReportSummary& summary) {
  const Json &request = part(content, "request"), &data = part(content, "data");
  const std::string of_class = string_of(request, "cohort_class");
  say_once(summary.asked, text("To try how well methods make a network forget ",
                               request.at("cohort_size").get<std::int64_t>(), " of its ",
                               data.at("train").get<std::int64_t>(), " training examples",
                               of_class.empty() ? "" : ", all of class " + of_class,
                               " (data: ", string_of(data, "spec"), ")."));
  std::size_t references = 0;
  for (const Json& run : content.at("runs")) {
    references += part(part(run, "training"), "references").size();
  }
  say_once(summary.done, text("In ", plural(content.at("runs").size(), "run"),
                              ", each with its own seed or cohort, a network "
                              "was trained on everything, changed by ",
                              plural(content.at("methods").size(), "method"),
                              ", and compared with networks trained anew without those examples",
                              references ? text(" (", references, " in all)") : "", "."));
}

// Leaks before over-forgotten before cannot tell before like retrained.
int severity(const std::string& verdict) {
  constexpr std::array<const char*, 4> order{"like retrained", "cannot tell", "over-forgotten",
                                             "leaks"};
  const auto found = std::find(order.begin(), order.end(), verdict);
  return static_cast<int>(found - order.begin());
}

SubjectVerdict verdict_of(const Subject& subject) {
  SubjectVerdict result{
      .subject = subject.label, .verdict = {}, .meaning = {}, .sentence = {}, .counts = {}};
  for (const Trial& trial : subject.trials) {
    const Json& overall = part(trial.audit, "overall");
    const std::string verdict = string_of(overall, "verdict");
    if (verdict.empty()) continue;
    if (result.verdict.empty() || severity(verdict) > severity(result.verdict)) {
      result.verdict = verdict;
      result.sentence =
          (subject.trials.size() > 1 ? trial.run + ": " : "") + string_of(overall, "sentence");
    }
    const auto found =
        std::find_if(result.counts.begin(), result.counts.end(),
                     [&](const VerdictCount& each) { return each.verdict == verdict; });
    if (found == result.counts.end()) {
      result.counts.push_back({verdict, 1});
    } else {
      ++found->count;
    }
  }
  result.meaning = verdict_meaning(result.verdict);
  return result;
}

// "consistent is like retrained in 2 of 3 runs; no other method ever is."
std::string headline_of(const std::vector<Subject>& subjects) {
  std::size_t most = 0, runs = 0;
  std::string names;
  for (const Subject& subject : subjects) {
    if (subject.name == "original" || subject.name == "retrain") continue;
    std::size_t good = 0;
    for (const Trial& trial : subject.trials) {
      good += string_of(part(trial.audit, "overall"), "verdict") == "like retrained";
    }
    runs = std::max(runs, subject.trials.size());
    if (good > most) names.clear();
    most = std::max(most, good);
    if (good == most && good > 0) names += (names.empty() ? "" : ", ") + subject.label;
  }
  if (runs == 0) return {};
  if (most == 0) return "No method short of retraining gave a model like a retrained one.";
  if (most == runs) return text("Like a retrained model in every run: ", names, ".");
  return text(
      "No method short of retraining gave a model like a retrained one in every run; most often, "
      "in ",
      most, " of ", runs, " runs: ", names, ".");
}

// "Error on the cohort: 0 % in original, 32 % in consistent, …; retrained models: 34 %."
void tell_found(const std::vector<Subject>& subjects, ReportSummary& summary) {
  const ReadoutTable table = readout_table(subjects);
  for (const ReadoutRow& row : table.rows) {
    if (row.id != "cohort_error" && row.id != "test_error") continue;
    std::string sentence = row.name + ": ";
    if (!sentence.empty()) sentence[0] = static_cast<char>(std::toupper(sentence[0]));
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (row.cells[i].value.count() == 0 || table.columns[i].style == retrain_style) continue;
      sentence +=
          text(spread_text(row.cells[i].value, row.unit), " for ", table.columns[i].label, ", ");
    }
    sentence.resize(sentence.size() - 2);
    if (row.retrained.count()) {
      sentence +=
          text("; models trained without those examples: ", spread_text(row.retrained, row.unit));
    }
    say_once(summary.found, sentence + ".");
  }
}

}  // namespace

std::string verdict_meaning(const std::string& verdict) {
  if (verdict == "like retrained") {
    return "Nothing that was measured tells the model from models that never saw these examples by "
           "more than chance does.";
  }
  if (verdict == "leaks") {
    return "What was measured shows, by more than chance explains, that the model once knew these "
           "examples.";
  }
  if (verdict == "over-forgotten") {
    return "The model treats these examples worse than a model would that never saw them; that, "
           "too, can give them away, or means damage.";
  }
  if (verdict == "cannot tell") {
    return "The measurements do not decide: there is too little to compare with, the values are "
           "too uncertain, or a single one stands out, as chance may do.";
  }
  return {};
}

ReportSummary report_summary(const std::vector<ReportSource>& sources) {
  ReportSummary summary;
  for (const ReportSource& source : sources) {
    const Json& content = source.record.content;
    if (source.record.kind == "forget") tell_forget(content, summary);
    if (source.record.kind == "audit") tell_audit(content, sources, summary);
    const std::vector<Subject> subjects = subjects_of(source.record);
    if (source.record.kind == "experiment") {
      tell_experiment(content, summary);
      summary.headline += (summary.headline.empty() ? "" : " ") + headline_of(subjects);
    }
    for (const Subject& subject : most_telling_first(subjects)) {
      const SubjectVerdict verdict = verdict_of(subject);
      if (!verdict.verdict.empty()) summary.verdicts.push_back(verdict);
    }
    tell_found(subjects, summary);
  }
  for (const std::string& limit : limits_of(sources)) say_once(summary.not_proved, limit);
  return summary;
}

}  // namespace pumice::report
