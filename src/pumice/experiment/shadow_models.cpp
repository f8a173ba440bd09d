#include "pumice/experiment/shadow_models.h"

#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/evaluation/membership_attack.h"

namespace pumice {
namespace {

constexpr std::int64_t batch_size = 256;

// Network inputs of one set and its labels.
struct Questions {
  at::Tensor inputs, labels;
};

at::Tensor margins_of(const Model& model, const Weights& weights, const Questions& questions) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> answers;
  for (const at::Tensor& batch : questions.inputs.split(batch_size)) {
    answers.push_back(model.logits(weights, batch));
  }
  return at::tensor(margins(at::cat(answers), questions.labels), at::kDouble);
}

std::vector<Weights> train_kind(const ForgettingTask& task, const ShadowOptions& options,
                                bool with_cohort) {
  const Weights start{task.weights.layout, task.start->to(task.weights.flat.scalar_type())};
  const TrainingSet set{task.train, with_cohort ? std::vector<std::int64_t>{} : task.split.cohort,
                        !with_cohort && options.replace};
  std::vector<Weights> trained;
  for (std::int64_t i = 0; i < options.count; ++i) {
    const TrainingOptions recipe = shadow_recipe(task.recipe, with_cohort, i);
    Training training(task.model, start, set, task.normalization, recipe);
    const std::string what = text("shadow ", i + 1, " of ", options.count,
                                  with_cohort ? " with the cohort" : " without it");
    train_to_end(training, recipe, [&](double share) {
      if (options.progress) options.progress(what, share);
    });
    trained.push_back(training.state().weights);
  }
  return trained;
}

}  // namespace

TrainingOptions shadow_recipe(const TrainingOptions& recipe, bool with_cohort, std::int64_t index) {
  TrainingOptions options = recipe;
  options.order_seed =
      stream_seed(recipe.order_seed, text("shadow/", with_cohort ? "in/" : "out/", index));
  return options;
}

ShadowModels train_shadows(const ForgettingTask& task, const ShadowOptions& options) {
  if (options.count < 2) fail("shadows: ", options.count, ", must be >= 2");
  if (!task.start) fail("shadows: the start is not known, must be given (--init)");
  if (task.recipe.update_statistics) {
    fail("shadows: the recipe trains batch-norm statistics, must have frozen ones");
  }
  return {.with_cohort = train_kind(task, options, true),
          .without_cohort = train_kind(task, options, false)};
}

ShadowMargins shadow_margins(const ForgettingTask& task, const Dataset& test,
                             const ShadowModels& shadows, const ScrubOptions& scrubbing) {
  const auto questions = [&](const Dataset& dataset) {
    return Questions{network_inputs(dataset.images, task.normalization), dataset.labels};
  };
  const Questions sets[] = {questions(subset(task.train, task.split.cohort)),
                            questions(subset(task.train, task.split.retain)), questions(test)};
  std::vector<at::Tensor> unlearned[3], never_saw[3];
  for (std::size_t i = 0; i < shadows.with_cohort.size(); ++i) {
    ForgettingTask own = task;
    own.weights = shadows.with_cohort[i];
    own.recipe = shadow_recipe(task.recipe, true, static_cast<std::int64_t>(i));
    SharedProblems shared(own);
    ScrubOptions options = scrubbing;
    if (options.noise.seed) {
      options.noise.seed = stream_seed(*options.noise.seed, text("shadow/noise/", i));
    }
    const Scrubbed scrubbed = scrub(own, shared, options);
    if (!scrubbed.succeeded()) {
      fail("shadow ", i + 1, ": ", scrubbing.method, " came to no result, ",
           scrubbed.summary.explanation);
    }
    for (std::size_t k = 0; k < 3; ++k) {
      unlearned[k].push_back(margins_of(task.model, scrubbed.sample, sets[k]));
    }
  }
  for (const Weights& weights : shadows.without_cohort) {
    for (std::size_t k = 0; k < 3; ++k) {
      never_saw[k].push_back(margins_of(task.model, weights, sets[k]));
    }
  }
  const auto table = [&](std::size_t k) {
    return MarginTable{.unlearned = at::stack(unlearned[k]), .never_saw = at::stack(never_saw[k])};
  };
  return {.cohort = table(0), .retain = table(1), .test = table(2)};
}

}  // namespace pumice
