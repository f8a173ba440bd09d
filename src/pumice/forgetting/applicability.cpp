#include "pumice/forgetting/applicability.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/linearization/last_layer.h"

namespace pumice {
namespace {

// A cohort example counts as near-duplicate if its nearest retained one is nearer than this share
// of the usual distance between nearest neighbours.
constexpr double near_share = 0.1;
// How many retained examples tell what is usual, and how many pass by at once.
constexpr std::size_t most_neighbours = 2000, block_of_examples = 1024;

std::string number(double value) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.3g", value);
  return out.data();
}

at::Tensor index_of(const std::vector<std::int64_t>& positions) {
  return at::tensor(positions, at::kLong);
}

void examine_gradients(const ForgettingTask& task, const LinearProblem& problem,
                       Applicability& result) {
  const double examples = static_cast<double>(task.train.size());
  at::Tensor of_cohort = at::zeros_like(problem.residual());
  const at::Tensor cohort = index_of(task.split.cohort);
  of_cohort.index_copy_(0, cohort, problem.residual().index_select(0, cohort));
  const at::Tensor cohort_gradient = problem.pull(of_cohort);
  const at::Tensor data_gradient = cohort_gradient + problem.pull(problem.residual() - of_cohort);
  const at::Tensor& u = problem.displacement();
  result.cohort_gradient_norm = cohort_gradient.norm().item<double>();
  result.data_gradient_norm = data_gradient.norm().item<double>();
  const double length = u.norm().item<double>();
  result.decay_gradient_norm = examples * task.weight_decay * length;
  result.gradient_norm = (data_gradient + u * (examples * task.weight_decay)).norm().item<double>();
  if (length > 0) {
    result.implied_decay = -data_gradient.dot(u).item<double>() / (examples * length * length);
  }

  ApplicabilityCheck check{.name = "stationary point", .sentence = {}};
  const double largest = std::max(result.data_gradient_norm, result.decay_gradient_norm);
  const double left = largest > 0 ? result.gradient_norm / largest : 0;
  check.sentence = text("|gradient on all data| = ", number(result.gradient_norm),
                        ", of the cohort alone ", number(result.cohort_gradient_norm), "; ",
                        number(100 * left), " % of the larger of its two terms is left");
  if (result.implied_decay && *result.implied_decay <= 0) {
    check.advice = Advice::refusal;
    check.sentence +=
        "; the data's gradient points away from where the decay pulls to, so this is not what the "
        "stated objective led to (other start, other decay, or not trained on these data?)";
  } else if (left > 0.5) {
    check.advice = Advice::warning;
    check.sentence += "; training stopped early, the difference of two solutions allows for it";
  }
  if (result.implied_decay) {
    check.sentence +=
        text("; it would balance best at weight decay ", number(*result.implied_decay),
             " (stated: ", number(task.weight_decay), ")");
  }
  result.checks.push_back(check);
}

void examine_linearity(const ForgettingTask& task, const LinearProblem& problem,
                       const ApplicabilityOptions& options, Applicability& result) {
  ApplicabilityCheck check{.name = "linearity", .sentence = {}};
  if (!task.start) {
    check.advice = Advice::warning;
    check.sentence =
        "the start is not known, so how linear the network is on the way from it "
        "cannot be told";
    result.checks.push_back(check);
    return;
  }
  const std::int64_t count = std::min(options.linearity_examples, task.train.size());
  const Linearization few =
      problem.stream().network().with_inputs(problem.stream().inputs().first(count));
  const at::Tensor& inputs = few.inputs();
  const at::ScalarType type = task.weights.flat.scalar_type();
  at::NoGradGuard no_gradient;
  const at::Tensor real = task.model.logits({task.weights.layout, task.start->to(type)}, inputs);
  const at::Tensor now = few.logits();
  const at::Tensor predicted = now - few.jvp(task.weights.flat - task.start->to(type));
  const double change = (now - real).norm().item<double>();
  result.linearity_error = change > 0 ? (predicted - real).norm().item<double>() / change : 0;
  check.sentence =
      text("going back to the start, the linear model misses the change of the logits by ",
           number(100 * *result.linearity_error), " %");
  if (*result.linearity_error > 1) {
    check.advice = Advice::warning;
    check.sentence += "; worse than predicting no change: the shift is an extrapolation, audit it";
  }
  result.checks.push_back(check);
}

void examine_statistics(const ForgettingTask& task, const ApplicabilityOptions& options,
                        Applicability& result) {
  ApplicabilityCheck check{.name = "batch-norm statistics", .sentence = {}};
  const std::vector<NamedTensor> own = task.model.buffers();
  if (own.empty()) {
    check.sentence = "the model has none";
  } else if (!options.start_buffers) {
    check.advice = Advice::warning;
    check.sentence =
        "the start is not known; if they were computed from the cohort, they still "
        "tell of it (they are not scrubbed)";
  } else {
    for (const auto& [name, tensor] : *options.start_buffers) {
      const auto same = std::find_if(own.begin(), own.end(), [&](const NamedTensor& other) {
        return other.first == name && other.second.sizes() == tensor.sizes() &&
               at::equal(other.second, tensor.to(other.second.scalar_type()));
      });
      result.statistics_as_start = result.statistics_as_start && same != own.end();
    }
    if (result.statistics_as_start) {
      check.sentence = "those of the start";
    } else {
      check.advice = Advice::warning;
      check.sentence =
          "differ from the start's: they were moved by the training data, the cohort "
          "included, and are not scrubbed";
    }
  }
  result.checks.push_back(check);
}

std::string pixels_digest(const at::Tensor& image) {
  Digest digest;
  const at::Tensor own = image.contiguous();
  digest.add_bytes(own.data_ptr(), own.nbytes());
  return digest.hex();
}

// Cohort examples with the pixels of a retained one.
std::int64_t identical_pixels(const ForgettingTask& task) {
  std::unordered_map<std::string, std::int64_t> cohort;  // how many have these, not found yet
  for (const std::int64_t position : task.split.cohort) {
    ++cohort[pixels_digest(task.train.images[position])];
  }
  std::int64_t found = 0;
  for (const std::int64_t position : task.split.retain) {
    const auto same = cohort.find(pixels_digest(task.train.images[position]));
    if (same == cohort.end()) continue;
    found += same->second;
    cohort.erase(same);
  }
  return found;
}

at::Tensor features_of(const ForgettingTask& task, const std::vector<std::int64_t>& positions) {
  return last_layer_inputs(task.model, task.weights,
                           InputSource(task.train.images.index_select(0, index_of(positions)),
                                       task.normalization))
      .to(at::kDouble);
}

// Cohort examples whose nearest retained one, by the features of the last layer, is nearer than a
// share of what is usual between retained ones. Retained examples pass by in blocks: what is kept
// are the features of the cohort and of those that tell what is usual.
std::int64_t near_duplicates(const ForgettingTask& task) {
  const std::vector<std::int64_t>&cohort = task.split.cohort, &retain = task.split.retain;
  std::vector<std::int64_t> drawn =
      RandomStream(1, "neighbours").permutation(static_cast<std::int64_t>(retain.size()));
  drawn.resize(std::min(drawn.size(), most_neighbours));
  std::vector<std::int64_t> asking = cohort;  // and then the drawn ones
  for (const std::int64_t place : drawn) asking.push_back(retain[static_cast<std::size_t>(place)]);
  const at::Tensor features = features_of(task, asking);
  const double far = std::numeric_limits<double>::infinity();
  at::Tensor nearest = at::full({features.size(0)}, far, at::kDouble);
  for (std::size_t first = 0; first < retain.size(); first += block_of_examples) {
    const std::size_t end = std::min(retain.size(), first + block_of_examples);
    at::Tensor distances =
        at::cdist(features, features_of(task, {retain.begin() + static_cast<std::ptrdiff_t>(first),
                                               retain.begin() + static_cast<std::ptrdiff_t>(end)}));
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const auto place = static_cast<std::size_t>(drawn[i]);
      if (place < first || place >= end) continue;
      distances[static_cast<std::int64_t>(cohort.size() + i)]
               [static_cast<std::int64_t>(place - first)] = far;  // itself
    }
    nearest = at::minimum(nearest, std::get<0>(distances.min(1)));
  }
  const auto own = static_cast<std::int64_t>(cohort.size());
  const double usual = nearest.narrow(0, own, nearest.size(0) - own).median().item<double>();
  return (nearest.narrow(0, 0, own) < near_share * usual).sum().item<std::int64_t>();
}

void examine_duplicates(const ForgettingTask& task, Applicability& result) {
  ApplicabilityCheck check{.name = "duplicates",
                           .sentence =
                               "no retained example equals or nearly equals "
                               "one of the cohort"};
  if (task.split.retain.size() < 2 || task.split.cohort.empty()) {
    check.sentence = "too few retained examples to look for duplicates of the cohort";
    result.checks.push_back(check);
    return;
  }
  result.identical_pixels = identical_pixels(task);
  result.near_duplicates = near_duplicates(task);
  if (result.identical_pixels > 0) {
    check.advice = Advice::refusal;
    check.sentence =
        text(result.identical_pixels, " of ", task.split.cohort.size(),
             " cohort examples have the same pixels as a retained one: the model keeps learning "
             "from them; add the copies to the cohort");
  } else if (result.near_duplicates > 0) {
    check.advice = Advice::warning;
    check.sentence =
        text(result.near_duplicates, " of ", task.split.cohort.size(),
             " cohort examples have a retained one very near in the last layer (copies "
             "or variants?): what they taught is taught by those, too");
  }
  result.checks.push_back(check);
}

void examine_classes(const ForgettingTask& task, Applicability& result) {
  ApplicabilityCheck check{.name = "classes", .sentence = {}};
  std::vector<std::int64_t> left(static_cast<std::size_t>(task.train.classes.size()));
  for (const std::int64_t position : task.split.retain) {
    ++left[static_cast<std::size_t>(task.train.labels[position].item<std::int64_t>())];
  }
  std::string gone;
  for (const std::int64_t position : task.split.cohort) {
    const auto label = static_cast<std::size_t>(task.train.labels[position].item<std::int64_t>());
    if (left[label] == 0) {
      gone += (gone.empty() ? "" : ", ") + task.train.classes.names[label];
      left[label] = -1;
    }
  }
  if (task.split.retain.empty()) {
    check.advice = Advice::warning;
    check.sentence = "the cohort is everything: what is left is the start";
  } else if (!gone.empty()) {
    check.advice = Advice::warning;
    check.sentence = text("no retained example is left of class ", gone,
                          "; a retrained model would hardly ever answer it");
  } else {
    check.sentence = text(task.split.cohort.size(), " of ", task.train.size(),
                          " examples are forgotten, every class keeps some");
  }
  result.checks.push_back(check);
}

}  // namespace

std::string advice_name(Advice advice) {
  return advice == Advice::go ? "go" : advice == Advice::warning ? "warning" : "refusal";
}

Advice Applicability::advice() const {
  Advice worst = Advice::go;
  for (const ApplicabilityCheck& check : checks) worst = std::max(worst, check.advice);
  return worst;
}

std::string Applicability::text() const {
  std::string out;
  for (const ApplicabilityCheck& check : checks) {
    out += "  " + advice_name(check.advice) +
           std::string(9 - advice_name(check.advice).size(), ' ') + check.name + ": " +
           check.sentence + "\n";
  }
  return out;
}

Applicability examine(const ForgettingTask& task, SharedProblems& shared,
                      const ApplicabilityOptions& options) {
  Applicability result;
  examine_classes(task, result);
  const LinearProblem& problem = shared.at_weights();
  examine_gradients(task, problem, result);
  examine_linearity(task, problem, options, result);
  examine_statistics(task, options, result);
  if (!options.excluded.empty()) {
    result.checks.push_back({.name = "training set",
                             .advice = Advice::warning,
                             .sentence = "the model was itself trained without " +
                                         options.excluded +
                                         "; which ones is not recorded, so the retained set may "
                                         "hold examples it never saw"});
  }
  ApplicabilityCheck decay{.name = "weight decay", .sentence = {}};
  if (options.decay_known) {
    decay.sentence = text(number(task.weight_decay), ", as the model itself says");
  } else {
    decay.advice = Advice::warning;
    decay.sentence = text(number(task.weight_decay),
                          " as given; the model does not say what it was trained with");
  }
  result.checks.push_back(decay);
  if (options.look_for_duplicates) examine_duplicates(task, result);
  return result;
}

nlohmann::json to_json(const Applicability& applicability) {
  nlohmann::json checks = nlohmann::json::array();
  for (const ApplicabilityCheck& check : applicability.checks) {
    checks.push_back({{"name", check.name},
                      {"advice", advice_name(check.advice)},
                      {"sentence", check.sentence}});
  }
  nlohmann::json json{{"advice", advice_name(applicability.advice())},
                      {"checks", checks},
                      {"gradient_norm", applicability.gradient_norm},
                      {"cohort_gradient_norm", applicability.cohort_gradient_norm},
                      {"data_gradient_norm", applicability.data_gradient_norm},
                      {"decay_gradient_norm", applicability.decay_gradient_norm},
                      {"statistics_as_start", applicability.statistics_as_start},
                      {"identical_pixels", applicability.identical_pixels},
                      {"near_duplicates", applicability.near_duplicates}};
  if (applicability.implied_decay) json["implied_decay"] = *applicability.implied_decay;
  if (applicability.linearity_error) json["linearity_error"] = *applicability.linearity_error;
  return json;
}

}  // namespace pumice
