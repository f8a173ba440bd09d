#include "pumice/cli/error_table.h"

#include <cstdio>

namespace pumice::cli {

Errors judge(const Model& model, const Weights& weights, const Normalization& normalization,
             const Dataset& cohort, const Dataset& retain, const Dataset& test) {
  const auto on = [&](const Dataset& dataset) {
    return dataset.size() ? evaluate(model, weights, dataset, normalization) : Evaluation{};
  };
  return {on(cohort), on(retain), on(test)};
}

nlohmann::json errors_json(const Errors& errors) {
  const auto one = [](const Evaluation& evaluation) {
    return nlohmann::json{
        {"examples", evaluation.count}, {"error", evaluation.error}, {"loss", evaluation.loss}};
  };
  nlohmann::json json{{"cohort", one(errors.cohort)}, {"retain", one(errors.retain)}};
  if (errors.test.count) json["test"] = one(errors.test);
  return json;
}

void print_errors_head() {
  std::printf("%-14s%20s%20s%20s\n", "", "cohort", "retained", "test");
  std::printf("  %-12s%10s%10s%10s%10s%10s%10s\n", "", "error", "loss", "error", "loss", "error",
              "loss");
}

void print_errors(const char* name, const Errors& errors) {
  std::printf("  %-12s", name);
  for (const Evaluation* evaluation : {&errors.cohort, &errors.retain, &errors.test}) {
    if (evaluation->count == 0) {
      std::printf("%10s%10s", "-", "-");
    } else {
      std::printf("%8.2f %%%10.4f", 100 * evaluation->error, evaluation->loss);
    }
  }
  std::printf("\n");
}

}  // namespace pumice::cli
