#include "pumice/experiment/references.h"

#include "pumice/core/error.h"
#include "pumice/core/seed.h"

namespace pumice {

TrainingOptions reference_recipe(const TrainingOptions& recipe, std::int64_t index) {
  TrainingOptions options = recipe;
  if (index > 0) options.order_seed = stream_seed(recipe.order_seed, text("reference/", index));
  return options;
}

std::vector<Weights> retrained_references(Model& model, const Weights& start, const Dataset& train,
                                          const Split& split, const Normalization& normalization,
                                          const ReferenceOptions& options) {
  if (options.count < 1) fail("references: ", options.count, ", must be >= 1");
  if (options.recipe.update_statistics) {
    fail("references: the recipe trains batch-norm statistics, must have frozen ones");
  }
  const TrainingSet set{train, split.cohort, options.replace};
  std::vector<Weights> references;
  for (std::int64_t i = 0; i < options.count; ++i) {
    const TrainingOptions recipe = reference_recipe(options.recipe, i);
    Training training(model, start, set, normalization, recipe);
    const std::string what = text("retraining ", i + 1, " of ", options.count);
    train_to_end(training, recipe, [&](double share) {
      if (options.progress) options.progress(what, share);
    });
    references.push_back(training.state().weights);
  }
  return references;
}

}  // namespace pumice
