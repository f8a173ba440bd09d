// No shift: the original model, and Fisher forgetting, which is noise alone.
#include "pumice/forgetting/forgetting_method.h"

namespace pumice {
namespace {

class Unchanged final : public ForgettingMethod {
 public:
  ShiftResult shift(const ForgettingTask& task, SharedProblems&) const override {
    ShiftResult result{.weights = {task.weights.layout, task.weights.flat.clone()}, .summary = {}};
    SummaryClock(task, result.summary).finish(result.weights.flat, 0);
    return result;
  }
};

}  // namespace

std::unique_ptr<ForgettingMethod> make_unchanged(const MethodOptions&) {
  return std::make_unique<Unchanged>();
}

}  // namespace pumice
