// A deletion request as a computation: the model, its data, who has to go, and how it was trained.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pumice/data/normalization.h"
#include "pumice/data/split.h"
#include "pumice/forgetting/linear_problem.h"
#include "pumice/model/model.h"
#include "pumice/model/training.h"

namespace pumice {

struct ForgettingTask {
  Model& model;
  Weights weights;    // w(D)
  at::Tensor centre;  // where weight decay pulls to, p values: usually w0
  // w0, where training began, if it is known: retraining and linearising there need it.
  std::optional<at::Tensor> start = {};
  const Dataset& train;  // D
  const Split& split;    // cohort and retain, ascending; the order of ids does not matter
  Normalization normalization;
  double weight_decay = 0;  // λ; methods with a ridge need > 0
  Loss loss = Loss::cross_entropy;
  TrainingOptions recipe;               // of w(D), for methods that train
  const Dataset* validation = nullptr;  // examples that w(D) never saw, for rules that use some
  LinearProblemOptions linear = {};
};

// Linearised problems that several methods of one request share: one kernel serves all of them.
class SharedProblems {
 public:
  explicit SharedProblems(const ForgettingTask& task) : task_(task) {}

  const LinearProblem& at_weights();  // linearised at w(D)
  const LinearProblem& at_start();    // linearised at w0; Error if it is not known
  // Linearised anywhere, not kept: Jacobian at `flat`, residuals there.
  LinearProblem at(const at::Tensor& flat) const;

 private:
  const ForgettingTask& task_;
  std::unique_ptr<LinearProblem> at_weights_, at_start_;
};

// Throws Error, before any work, if the parts do not fit together.
void check(const ForgettingTask& task);

}  // namespace pumice
