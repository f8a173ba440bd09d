// Errors and losses before and after forgetting, for people and for the record.
#pragma once

#include <nlohmann/json.hpp>

#include "pumice/model/training.h"

namespace pumice::cli {

struct Errors {
  Evaluation cohort, retain, test;  // of no examples where there are none
};

// One forward pass over each set; a set may be empty.
Errors judge(const Model& model, const Weights& weights, const Normalization& normalization,
             const Dataset& cohort, const Dataset& retain, const Dataset& test);

nlohmann::json errors_json(const Errors& errors);
void print_errors_head();
void print_errors(const char* name, const Errors& errors);

}  // namespace pumice::cli
