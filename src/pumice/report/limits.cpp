#include "pumice/report/limits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "pumice/core/error.h"
#include "pumice/report/subject.h"

namespace pumice::report {
namespace {

using Sentences = std::vector<std::string>;

std::string joined(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

bool is_linearised(const std::string& method) {
  return method.find("ntk") != std::string::npos ||
         method.find("consistent") != std::string::npos ||
         method.find("newton") != std::string::npos;
}

// Where noise stands in a record, by what it belongs to.
struct NoiseFacts {
  std::set<std::string> without, repeatable, linearised;

  void look(const std::string& name, const std::string& method, const Json& noise) {
    if (noise.empty() || number_of(noise.value("scale", Json(0.0))) == 0) {
      without.insert(name);
    } else if (!noise.value("private", true)) {
      repeatable.insert(name);
    }
    if (is_linearised(method)) linearised.insert(name);
  }
};

NoiseFacts noise_facts(const std::vector<ReportSource>& sources) {
  NoiseFacts facts;
  for (const ReportSource& source : sources) {
    const Json& content = source.record.content;
    if (source.record.kind == "forget") {
      for (const Json& method : content.at("methods")) {
        const std::string name = string_of(method, "method");
        if (method.value("converged", true)) facts.look(name, name, part(method, "noise"));
      }
    } else if (source.record.kind == "audit") {
      facts.look(content.at("subject"), {}, part(content, "noise"));
    } else {
      for (const Subject& subject : subjects_of(source.record)) {
        for (const Trial& trial : subject.trials) {
          if (trial.summary.empty()) continue;
          facts.look(subject.label, string_of(trial.summary, "method", subject.name),
                     part(trial.summary, "noise"));
        }
      }
    }
  }
  return facts;
}

void tell_noise(const NoiseFacts& facts, Sentences& out) {
  if (!facts.without.empty()) {
    out.push_back(
        text("No noise was added to: ", joined(facts.without),
             ". Nothing then bounds what these weights still tell someone who can read them; the "
             "measurements are all there is."));
  }
  if (!facts.repeatable.empty()) {
    out.push_back(
        text("The noise of ", joined(facts.repeatable),
             " came from a given seed and can be subtracted: such a release is not private."));
  }
  if (!facts.linearised.empty()) {
    out.push_back(
        text(joined(facts.linearised),
             ": computed with a linear approximation of the network. The result is "
             "close to a retrained model on average, not equal to one and not for every example."));
  }
}

// The fewest references that a readout was judged with; none if nothing was judged.
std::size_t fewest_references(const std::vector<ReportSource>& sources) {
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const ReportSource& source : sources) {
    for (const Subject& subject : subjects_of(source.record)) {
      for (const Trial& trial : subject.trials) {
        for (const Json& readout : trial.audit.value("readouts", Json::array())) {
          fewest = std::min(fewest, readout.value("references", Json::array()).size());
        }
      }
    }
  }
  return fewest;
}

void tell_references(std::size_t fewest, Sentences& out) {
  if (fewest == 0) {
    out.push_back(
        "Some measurements had no model trained without the examples to be compared with; for them "
        "the verdict is “cannot tell”.");
  } else if (fewest == 1) {
    out.push_back(
        "Some measurements had a single retrained model to be compared with. How much chance alone "
        "moves "
        "such a model is then unknown, so the verdict is “cannot tell”.");
  }
}

// Do the audits speak of the models that the forget records wrote?
void tell_connection(const std::vector<ReportSource>& sources, Sentences& out) {
  std::map<std::string, std::string> written;  // digest → method
  std::set<std::string> audited;
  bool judged = false;
  for (const ReportSource& source : sources) {
    const Json& content = source.record.content;
    if (source.record.kind == "forget") {
      for (const Json& method : content.at("methods")) {
        if (method.contains("model"))
          written[string_of(method, "model")] = string_of(method, "method");
      }
    } else {
      judged = true;
      if (source.record.kind == "audit") audited.insert(string_of(content, "model"));
    }
  }
  if (written.empty()) return;
  if (!judged) {
    out.push_back("No audit was made: what is left in the changed model was not measured.");
    return;
  }
  std::set<std::string> unseen;
  for (const auto& [model, method] : written) {
    if (!audited.contains(model)) unseen.insert(method);
  }
  if (!unseen.empty()) {
    out.push_back(text("No audit of the model that was written by: ", joined(unseen), "."));
  }
  for (const std::string& model : audited) {
    if (!written.contains(model)) {
      out.push_back(text("The audited model (", model,
                         ") is none of those that the forgetting wrote, so the audit "
                         "says nothing about them."));
    }
  }
}

void tell_examination(const std::vector<ReportSource>& sources, Sentences& out) {
  for (const ReportSource& source : sources) {
    const Json& examination = part(source.record.content, "applicability");
    for (const Json& check : examination.value("checks", Json::array())) {
      const std::string advice = string_of(check, "advice");
      if (advice == "go") continue;
      out.push_back(text(advice == "refusal"
                             ? "The examination beforehand refused this model and was overruled ("
                             : "The examination beforehand warned (",
                         string_of(check, "name"), "): ", string_of(check, "sentence"), "."));
    }
  }
}

}  // namespace

std::vector<std::string> limits_of(const std::vector<ReportSource>& sources) {
  Sentences out;
  tell_connection(sources, out);
  tell_noise(noise_facts(sources), out);
  tell_references(fewest_references(sources), out);
  tell_examination(sources, out);
  const bool experiment =
      std::any_of(sources.begin(), sources.end(),
                  [](const ReportSource& source) { return source.record.kind == "experiment"; });
  if (experiment) {
    out.push_back(
        "The experiment speaks of its own network, data and seeds. For another model, audit that "
        "model.");
  }
  out.push_back(
      "Forgetting does not reach batch-norm statistics, the normalisation of inputs, the "
      "pre-trained body, or "
      "copies and near copies of the examples among those that were kept.");
  out.push_back(
      "Other traces remain until they are deleted: the original model, checkpoints, logs, caches, "
      "backups and the "
      "data themselves.");
  out.push_back(
      "A measurement that finds nothing is no proof that nothing is there: a stronger attack may "
      "find more.");
  return out;
}

}  // namespace pumice::report
