// Before any work: does this model fit the assumptions that forgetting rests on?
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pumice/forgetting/forgetting_task.h"

namespace pumice {

enum class Advice { go, warning, refusal };
std::string advice_name(Advice advice);

struct ApplicabilityCheck {
  std::string name;
  Advice advice = Advice::go;
  std::string sentence;  // what was found, and what follows
};

struct Applicability {
  std::vector<ApplicabilityCheck> checks;

  // Of the objective Σ loss + N·λ/2 |w − centre|² at w: gradients of all data, and of the cohort.
  double gradient_norm = 0;         // |g_D|
  double cohort_gradient_norm = 0;  // |g_f|, without the decay term
  double data_gradient_norm = 0;    // |J_Dᵀ r|
  double decay_gradient_norm = 0;   // N·λ·|u|
  // The λ at which the decay best cancels the data's gradient: −<J_Dᵀ r, u>/(N |u|²).
  std::optional<double> implied_decay = {};
  // |f_w − J u − f_{w0}| / |f_w − f_{w0}| on a few examples: 0 if the network were linear between
  // w0 and w, 1 if the linear model is no better than saying that nothing changed.
  std::optional<double> linearity_error = {};
  bool statistics_as_start = true;
  std::int64_t identical_pixels = 0;  // cohort examples that are also among the retained ones
  std::int64_t near_duplicates =
      0;  // cohort examples with a retained one very near in the last layer

  Advice advice() const;     // the worst
  std::string text() const;  // one line a check
};
nlohmann::json to_json(const Applicability& applicability);

struct ApplicabilityOptions {
  bool decay_known = true;  // from the model's own record, not only from the user
  // Buffers of the start, to compare with the model's; none: not known.
  std::optional<std::vector<NamedTensor>> start_buffers = {};
  std::string excluded = {};  // what the model says that its own training left out
  std::int64_t linearity_examples = 64;
  bool look_for_duplicates = true;  // of several processes one is enough: the others can leave it
};

// Cost: about one and a half training epochs (two backward passes over all examples between them,
// features of all examples, a tangent pass over a few), and N·(Nf + 2,000)·d multiplications for
// distances between features. Memory: the features of the cohort and of 2,000 retained examples.
Applicability examine(const ForgettingTask& task, SharedProblems& shared,
                      const ApplicabilityOptions& options);

}  // namespace pumice
