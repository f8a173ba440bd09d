#include "pumice/forgetting/forgetting_task.h"

#include "pumice/core/error.h"

namespace pumice {

LinearProblem SharedProblems::at(const at::Tensor& flat) const {
  return {task_.model,
          {task_.weights.layout, flat.to(task_.weights.flat.scalar_type())},
          InputSource(task_.train.images, task_.normalization),
          task_.train.labels,
          task_.centre,
          task_.loss,
          task_.linear};
}

const LinearProblem& SharedProblems::at_weights() {
  if (!at_weights_) at_weights_ = std::make_unique<LinearProblem>(at(task_.weights.flat));
  return *at_weights_;
}

const LinearProblem& SharedProblems::at_start() {
  if (!task_.start) {
    fail("linearising at the start: it is not known, must be given (--init)");
  }
  if (!at_start_) at_start_ = std::make_unique<LinearProblem>(at(*task_.start));
  return *at_start_;
}

void check(const ForgettingTask& task) {
  if (!(*task.weights.layout == task.model.layout())) {
    fail("weights: ", task.weights.layout->total(), " values in ",
         task.weights.layout->entries().size(), " tensors, the model has ",
         task.model.layout().total(), " in ", task.model.layout().entries().size(),
         " or other names and shapes");
  }
  if (task.centre.dim() != 1 || task.centre.numel() != task.weights.flat.numel()) {
    fail("centre of the decay: ", task.centre.numel(), " values, must be ",
         task.weights.flat.numel(), " as in the model");
  }
  if (task.start && task.start->numel() != task.weights.flat.numel()) {
    fail("start: ", task.start->numel(), " weights, must be ", task.weights.flat.numel(),
         " as in the model");
  }
  if (!task.weights.flat.isfinite().all().item<bool>()) fail("weights: not all are finite");
  if (!task.centre.isfinite().all().item<bool>())
    fail("centre of the decay: not all values are finite");
  if (static_cast<std::int64_t>(task.split.cohort.size() + task.split.retain.size()) !=
      task.train.size()) {
    fail("split: ", task.split.cohort.size(), " + ", task.split.retain.size(),
         " examples, must be the ", task.train.size(), " of the training set");
  }
}

}  // namespace pumice
