// Which rule for direction and scale of the shift comes closest to retraining, without a retrained
// model?
//
//   methods_study [--brief | --defaults] FOLDER COHORT...   > results.json
//
// --brief: one linearisation, at w(D), and all rules for the scale; --defaults: what `pumice
// forget` would do, and the paper.
//
// FOLDER holds what `pumice train` wrote: w.safetensors with w.start.safetensors and w.epochs/,
// rCOHORT-a.safetensors and rCOHORT-b.safetensors (retrained without the cohort, -b in another
// order), and the cohort's ids in cCOHORT.txt. Each idea is judged by distances to the two
// retrained models: L1 = mean over examples of |softmax − softmax of retrained|₁, on the cohort,
// the retained examples and the test set.
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>

#include "machine.h"
#include "pumice/core/error.h"
#include "pumice/forgetting/forgetting_method.h"
#include "pumice/forgetting/scale_rule.h"
#include "pumice/linearization/last_layer.h"
#include "pumice/model/checkpoint.h"

namespace {

using namespace pumice;
using nlohmann::json;

struct Study {
  Checkpoint original, start;
  std::vector<Weights> path;       // kept epochs
  std::vector<Weights> retrained;  // of the cohort at hand
  Selection selection;
  Normalization normalization;
  Split split;
  double decay = 0;
  at::Tensor inputs, test_inputs, validation_inputs;
};

Study open_study(const std::filesystem::path& folder) {
  Study study;
  study.original = open_checkpoint(folder / "w.safetensors");
  study.start = open_checkpoint(folder / "w.start.safetensors");
  std::vector<std::filesystem::path> epochs;
  for (const auto& file : std::filesystem::directory_iterator(folder / "w.epochs")) {
    epochs.push_back(file.path());
  }
  std::sort(epochs.begin(), epochs.end());
  for (const auto& file : epochs) study.path.push_back(open_checkpoint(file).weights);
  const auto request = stored_data_request(study.original.metadata);
  study.selection = load(*request);
  study.normalization = normalization_for(study.original.metadata, study.selection.train);
  study.decay =
      training_options_from_json(json::parse(study.original.metadata.at("recipe"))).weight_decay;
  study.inputs = network_inputs(study.selection.train.images, study.normalization);
  study.test_inputs = network_inputs(study.selection.test.images, study.normalization);
  study.validation_inputs = network_inputs(study.selection.validation.images, study.normalization);
  return study;
}

void choose_cohort(Study& study, const std::filesystem::path& folder, const std::string& cohort) {
  study.retrained.clear();
  for (const char* which : {"a", "b"}) {
    study.retrained.push_back(
        open_checkpoint(folder / text("r", cohort, "-", which, ".safetensors")).weights);
  }
  study.split = make_split(study.selection.train, study.selection.test,
                           read_ids(folder / text("c", cohort, ".txt")));
}

class Judge {
 public:
  explicit Judge(const Study& study) : study_(study) {
    const at::Tensor cohort = at::tensor(study.split.cohort, at::kLong);
    const at::Tensor retain = at::tensor(study.split.retain, at::kLong);
    cohort_ = cohort;
    retain_ = retain;
    for (const Weights& reference : study.retrained) answers_.push_back(answers(reference.flat));
    at::Tensor mean = at::zeros_like(study.original.weights.flat);
    for (const Weights& reference : study.retrained) mean.add_(reference.flat);
    truth_ = (mean / static_cast<double>(study.retrained.size()) - study.original.weights.flat)
                 .to(at::kDouble);
  }

  struct Answers {
    at::Tensor train, test;  // softmax
  };

  at::Tensor logits(const at::Tensor& flat, const at::Tensor& inputs) const {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> parts;
    const Weights weights{study_.original.weights.layout, flat.to(at::kFloat)};
    for (const at::Tensor& batch : inputs.split(128)) {
      parts.push_back(study_.original.model->logits(weights, batch));
    }
    return at::cat(parts);
  }

  Answers answers(const at::Tensor& flat) const {
    return {logits(flat, study_.inputs).softmax(1), logits(flat, study_.test_inputs).softmax(1)};
  }

  json judge(const at::Tensor& flat) const {
    const Answers own = answers(flat);
    const auto distance = [&](const at::Tensor& a, const at::Tensor& b) {
      return (a - b).abs().sum(1).mean().item<double>();
    };
    double cohort = 0, retain = 0, test = 0;
    for (const Answers& other : answers_) {
      const double share = 1.0 / static_cast<double>(answers_.size());
      cohort += share *
                distance(own.train.index_select(0, cohort_), other.train.index_select(0, cohort_));
      retain += share *
                distance(own.train.index_select(0, retain_), other.train.index_select(0, retain_));
      test += share * distance(own.test, other.test);
    }
    const at::Tensor labels = study_.selection.train.labels;
    const auto error = [&](const at::Tensor& shares, const at::Tensor& truth) {
      return shares.argmax(1).ne(truth).to(at::kDouble).mean().item<double>();
    };
    const auto loss = [&](const at::Tensor& shares, const at::Tensor& truth) {
      return -shares.gather(1, truth.unsqueeze(1)).clamp_min(1e-30).log().mean().item<double>();
    };
    const at::Tensor on_cohort = own.train.index_select(0, cohort_);
    const at::Tensor cohort_labels = labels.index_select(0, cohort_);
    const at::Tensor shift = (flat - study_.original.weights.flat).to(at::kDouble);
    const double norm = shift.norm().item<double>();
    return {{"l1_cohort", cohort},
            {"l1_retain", retain},
            {"l1_test", test},
            {"error_cohort", error(on_cohort, cohort_labels)},
            {"loss_cohort", loss(on_cohort, cohort_labels)},
            {"error_retain",
             error(own.train.index_select(0, retain_), labels.index_select(0, retain_))},
            {"error_test", error(own.test, study_.selection.test.labels)},
            {"norm", norm},
            {"norm_ratio", norm / truth_.norm().item<double>()},
            {"cosine",
             norm > 0 ? shift.dot(truth_).item<double>() / (norm * truth_.norm().item<double>())
                      : 0.0}};
  }

  json floor() const {
    const auto distance = [&](const at::Tensor& a, const at::Tensor& b) {
      return (a - b).abs().sum(1).mean().item<double>();
    };
    json one = judge(study_.retrained[0].flat), two = judge(study_.retrained[1].flat);
    return {{"l1_cohort", distance(answers_[0].train.index_select(0, cohort_),
                                   answers_[1].train.index_select(0, cohort_))},
            {"l1_retain", distance(answers_[0].train.index_select(0, retain_),
                                   answers_[1].train.index_select(0, retain_))},
            {"l1_test", distance(answers_[0].test, answers_[1].test)},
            {"a", one},
            {"b", two}};
  }

  // Mean cross-entropy on the retained examples plus the decay term: what w(Dr) minimises.
  double objective(const at::Tensor& flat, const at::Tensor& centre) const {
    const at::Tensor own = logits(flat, study_.inputs.index_select(0, retain_));
    const at::Tensor truth = study_.selection.train.labels.index_select(0, retain_);
    return at::cross_entropy_loss(own, truth).item<double>() +
           study_.decay / 2 * (flat - centre).to(at::kDouble).square().sum().item<double>();
  }

  // Loss on validation examples of the cohort's classes, weighted as in the cohort.
  double validation_loss(const at::Tensor& flat) const {
    const at::Tensor& truth = study_.selection.validation.labels;
    const at::Tensor losses = -logits(flat, study_.validation_inputs)
                                   .log_softmax(1)
                                   .gather(1, truth.unsqueeze(1))
                                   .squeeze(1);
    const at::Tensor cohort_labels = study_.selection.train.labels.index_select(0, cohort_);
    double sum = 0;
    const auto counts = at::bincount(cohort_labels, {}, study_.selection.train.classes.size());
    for (std::int64_t k = 0; k < counts.numel(); ++k) {
      const double count = counts[k].item<double>();
      if (count > 0) sum += count * losses.masked_select(truth == k).mean().item<double>();
    }
    return sum / static_cast<double>(study_.split.cohort.size());
  }

  double cohort_loss(const at::Tensor& flat) const {
    const at::Tensor own = logits(flat, study_.inputs.index_select(0, cohort_));
    return at::cross_entropy_loss(own, study_.selection.train.labels.index_select(0, cohort_))
        .item<double>();
  }

 private:
  const Study& study_;
  at::Tensor cohort_, retain_, truth_;
  std::vector<Answers> answers_;
};

// The candidate with the smallest value.
double best_of(const std::vector<double>& candidates, const std::function<double(double)>& value) {
  double best = candidates.front(), least = value(best);
  for (const double candidate : candidates) {
    const double now = value(candidate);
    if (now < least) {
      least = now;
      best = candidate;
    }
  }
  return best;
}

// Problems that do not depend on the cohort.
struct Linearized {
  std::unique_ptr<LinearProblem> half, three_quarters;
  std::vector<std::unique_ptr<LinearProblem>> path;  // two kept points; w(D) itself is the third
  at::Tensor path_theta, path_displaced;
};

enum class Extent { all, brief, defaults };

class Ideas {
 public:
  Ideas(const Study& study, SharedProblems& shared, const ForgettingTask& task, Linearized& others,
        Extent extent)
      : study_(study),
        extent_(extent),
        judge_(study),
        shared_(shared),
        task_(task),
        others_(others),
        here_(shared.at_weights()),
        u_(here_.displacement()),
        wide_(study.original.weights.flat.to(at::kDouble)),
        centre_(study.start.weights.flat) {}

  json run() {
    const json floor = judge_.floor();
    std::fprintf(stderr,
                 "cohort %zu: floor %.3f %.3f %.3f, retrained err %.2f %.2f loss %.2f %.2f\n",
                 study_.split.cohort.size(), floor["l1_cohort"].get<double>(),
                 floor["l1_retain"].get<double>(), floor["l1_test"].get<double>(),
                 floor["a"]["error_cohort"].get<double>(), floor["b"]["error_cohort"].get<double>(),
                 floor["a"]["loss_cohort"].get<double>(), floor["b"]["loss_cohort"].get<double>());
    add("original", wide_);
    add("ntk, trapezium", method_named("ntk").make({})->shift(task_, shared_).weights.flat);
    add("newton", method_named("newton").make({})->shift(task_, shared_).weights.flat);
    defaults();
    if (extent_ == Extent::defaults) return result(floor);
    for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
      for (const double factor : {1.0, 0.1, 3.0}) {
        if (extent_ == Extent::brief && factor != 1) continue;
        const auto direction = direction_of(here_, curvature, study_.decay * factor);
        const std::string name = text(curvature_name(curvature),
                                      factor == 1 ? std::string() : text(", ridge ×", factor));
        rules(name, direction.value, direction.all.value, u_, factor == 1);
      }
    }
    if (extent_ == Extent::brief) return result(floor);
    last_layer();
    between();
    path_average();
    second();
    return result(floor);
  }

 private:
  json result(const json& floor) const {
    return {{"cohort", study_.split.cohort.size()}, {"floor", floor}, {"ideas", ideas_}};
  }

  LinearProblem::Direction direction_of(const LinearProblem& problem, Curvature curvature,
                                        double decay) const {
    return problem.direction(study_.split.cohort, study_.split.retain,
                             {.curvature = curvature, .decay = decay});
  }

  void add(const std::string& name, const at::Tensor& flat, json extra = json::object()) {
    json result = judge_.judge(flat);
    result.update(extra);
    std::fprintf(stderr, "%-42s L1 %.3f %.3f %.3f err %.2f loss %.2f cos %.3f ratio %.2f %s\n",
                 name.c_str(), result["l1_cohort"].get<double>(), result["l1_retain"].get<double>(),
                 result["l1_test"].get<double>(), result["error_cohort"].get<double>(),
                 result["loss_cohort"].get<double>(), result["cosine"].get<double>(),
                 result["norm_ratio"].get<double>(), extra.empty() ? "" : extra.dump().c_str());
    ideas_[name] = result;
  }

  at::Tensor moved(const at::Tensor& direction, double scale) const {
    return (wide_ + direction * scale).to(at::kFloat);
  }

  // A direction with every rule for its scale. `all`: wlin(D), `u`: the known displacement.
  void rules(const std::string& name, const at::Tensor& direction, const at::Tensor& all,
             const at::Tensor& u, bool thorough) {
    for (const double scale : {1.0, 1.5, 2.0, 3.0}) {
      if (thorough || scale == 1 || scale == 2) {
        add(text(name, ", scale ", scale), moved(direction, scale));
      }
    }
    const double undershoot = u.dot(u).item<double>() / u.dot(all).item<double>();
    add(name + ", undershoot", moved(direction, undershoot), {{"scale", undershoot}});
    const double lengths = u.norm().item<double>() / all.norm().item<double>();
    add(name + ", length ratio", moved(direction, lengths), {{"scale", lengths}});
    if (!thorough) return;
    const double on_objective = best_of({0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3}, [&](double scale) {
      return judge_.objective(moved(direction, scale), centre_);
    });
    add(name + ", retain objective", moved(direction, on_objective), {{"scale", on_objective}});
    // The cohort's loss has to become what unseen examples of its classes have.
    const double on_validation = best_of({0.5, 1, 1.5, 2, 2.5, 3, 4, 5}, [&](double scale) {
      const at::Tensor flat = moved(direction, scale);
      return std::abs(judge_.cohort_loss(flat) - judge_.validation_loss(flat));
    });
    add(name + ", validation", moved(direction, on_validation), {{"scale", on_validation}});
  }

  // The default of `consistent`, with and without unseen examples, and what its scale rule gives
  // for the other curvature.
  void defaults() {
    ForgettingTask task = task_;
    for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
      for (const bool unseen : {true, false}) {
        task.validation = unseen ? &study_.selection.validation : nullptr;
        const ShiftResult result =
            method_named("consistent").make({.curvature = curvature})->shift(task, shared_);
        json extra{{"scale", *result.summary.scale}};
        if (result.summary.margins) {
          extra["target"] = result.summary.margins->target;
          extra["matched"] = result.summary.margins->matched_scale;
        }
        add(text(curvature_name(curvature), unseen ? ", margin rule" : ", capped undershoot"),
            result.weights.flat, extra);
      }
    }
  }

  // The shift of the last layer replaced by the difference of two exact solutions on the features
  // that the layers below have after and before their shift.
  void last_layer() {
    const auto& entries = study_.original.weights.layout->entries();
    const auto& matrix = entries[entries.size() - 2];
    const auto& bias = entries.back();
    if (matrix.shape.size() != 2 || bias.shape.size() != 1) return;
    const auto head_of = [&](const at::Tensor& flat) {
      return at::cat({flat.narrow(0, matrix.offset, matrix.count).view(matrix.shape),
                      flat.narrow(0, bias.offset, bias.count).unsqueeze(1)},
                     1)
          .to(at::kDouble);
    };
    const auto features_of = [&](const at::Tensor& flat) {
      return last_layer_inputs(*study_.original.model,
                               {study_.original.weights.layout, flat.to(at::kFloat)},
                               study_.inputs);
    };
    const at::Tensor& labels = study_.selection.train.labels;
    const at::Tensor retain = at::tensor(study_.split.retain, at::kLong);
    const auto direction = direction_of(here_, Curvature::softmax, study_.decay);
    for (const double scale :
         {1.0, u_.norm().item<double>() / direction.all.value.norm().item<double>()}) {
      at::Tensor flat = wide_ + direction.value * scale;
      const at::Tensor before =
          fit_linear_classifier(features_of(wide_), labels, head_of(centre_), study_.decay);
      const at::Tensor after =
          fit_linear_classifier(features_of(flat).index_select(0, retain),
                                labels.index_select(0, retain), head_of(centre_), study_.decay);
      const at::Tensor head = head_of(wide_) + after - before;
      flat.narrow(0, matrix.offset, matrix.count)
          .copy_(head.narrow(1, 0, head.size(1) - 1).reshape({-1}));
      flat.narrow(0, bias.offset, bias.count).copy_(head.select(1, head.size(1) - 1));
      add(text("softmax, last layer exact, ", scale == 1 ? "scale 1" : "length ratio"),
          flat.to(at::kFloat), {{"scale", scale}});
    }
  }

  void between() {
    for (const auto& [share, problem] :
         {std::pair{0.5, &others_.half}, std::pair{0.75, &others_.three_quarters}}) {
      if (!*problem) {
        *problem = std::make_unique<LinearProblem>(
            shared_.at(centre_ + (study_.original.weights.flat - centre_) * share));
      }
      for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
        const auto direction = direction_of(**problem, curvature, study_.decay);
        rules(text(curvature_name(curvature), " at ", share), direction.value, direction.all.value,
              (*problem)->displacement(), false);
      }
    }
  }

  // Coefficients from the kernel averaged over kept points of the path, pulled back through each
  // point's Jacobian. Residual of the averaged linear model at the centre: r(w) − J̄ u.
  void path_average() {
    if (!others_.path_theta.defined()) {
      others_.path_theta = here_.kernel().theta.clone();
      others_.path_displaced = here_.displaced().clone();
      for (const std::size_t i : {study_.path.size() / 4, study_.path.size() / 2}) {
        others_.path.push_back(std::make_unique<LinearProblem>(shared_.at(study_.path[i].flat)));
        others_.path_theta += others_.path.back()->kernel().theta;
        others_.path_displaced +=
            others_.path.back()->linearization().jvp(u_.to(at::kFloat)).to(at::kDouble);
      }
      others_.path_theta /= 3;
      others_.path_displaced /= 3;
    }
    const at::Tensor right = here_.residual() - others_.path_displaced;
    const auto pulled = [&](const at::Tensor& coefficients) {
      at::Tensor sum = here_.pull(coefficients);
      for (const auto& problem : others_.path) sum += problem->pull(coefficients);
      return sum / 3;
    };
    const auto solved = [&](const std::vector<std::int64_t>& part) {
      const at::Tensor index = at::tensor(part, at::kLong);
      const DualSolution solution =
          solve_dual({kernel_of(others_.path_theta, part, right.size(1)), {}},
                     study_.decay * static_cast<double>(part.size()), right.index_select(0, index));
      at::Tensor padded = at::zeros_like(right);
      padded.index_copy_(0, index, -solution.coefficients);
      return padded;
    };
    std::vector<std::int64_t> everything(static_cast<std::size_t>(study_.selection.train.size()));
    std::iota(everything.begin(), everything.end(), 0);
    const at::Tensor all = solved(everything);
    const at::Tensor kept = solved(study_.split.retain);
    rules("identity, path average", pulled(kept - all), pulled(all), u_, false);
  }

  // A second linearisation, half-way along the first shift; its direction replaces the first.
  void second() {
    const auto first = direction_of(here_, Curvature::softmax, study_.decay);
    const LinearProblem problem = shared_.at(wide_ + first.value * 0.5);
    const auto direction = direction_of(problem, Curvature::softmax, study_.decay);
    rules("softmax, second at half", direction.value, direction.all.value, problem.displacement(),
          false);
  }

  const Study& study_;
  Extent extent_;
  Judge judge_;
  SharedProblems& shared_;
  const ForgettingTask& task_;
  Linearized& others_;
  const LinearProblem& here_;
  at::Tensor u_, wide_, centre_;
  json ideas_ = json::object();
};

}  // namespace

int main(int count, char** arguments) {
  pumice::benchmark::start_like_the_tool(arguments);
  try {
    const std::string first = count > 1 ? arguments[1] : "";
    const Extent extent = first == "--defaults" ? Extent::defaults
                          : first == "--brief"  ? Extent::brief
                                                : Extent::all;
    if (extent != Extent::all) {
      ++arguments;
      --count;
    }
    if (count < 3) {
      std::fprintf(stderr, "usage: methods_study [--brief | --defaults] FOLDER COHORT...\n");
      return 2;
    }
    const std::filesystem::path folder = arguments[1];
    Study study = open_study(folder);
    choose_cohort(study, folder, arguments[2]);
    const ForgettingTask task{.model = *study.original.model,
                              .weights = study.original.weights,
                              .centre = study.start.weights.flat,
                              .start = study.start.weights.flat,
                              .train = study.selection.train,
                              .split = study.split,
                              .normalization = study.normalization,
                              .weight_decay = study.decay,
                              .recipe = {}};
    SharedProblems shared(task);
    Linearized others;
    json results{{"machine", benchmark::machine_description()},
                 {"folder", folder.filename().string()},
                 {"decay", study.decay},
                 {"displacement", shared.at_weights().displacement().norm().item<double>()},
                 {"cohorts", json::object()}};
    for (int i = 2; i < count; ++i) {
      choose_cohort(study, folder, arguments[i]);
      results["cohorts"][arguments[i]] = Ideas(study, shared, task, others, extent).run();
    }
    std::printf("%s\n", results.dump(2).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "methods_study: %s\n", error.what());
    return 1;
  }
}
