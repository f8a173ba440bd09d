// What shadow models answer: the evidence of attacks that know the whole procedure.
#pragma once

#include <ATen/ATen.h>

namespace pumice {

// Margins (log-odds of the true class, `margins`) of the same E examples: one row a shadow model.
struct MarginTable {
  at::Tensor unlearned;  // K_u×E, float64: trained with the cohort, then made to forget it
  at::Tensor never_saw;  // K_o×E, float64: trained without it
};

// Columns in the order of the split (cohort, retain) and of the test set.
struct ShadowMargins {
  MarginTable cohort, retain, test;
};

}  // namespace pumice
