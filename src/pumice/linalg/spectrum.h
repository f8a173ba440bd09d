// Eigenvalues of a symmetric matrix, and how many of them a ridge lets through.
#pragma once

#include <ATen/ATen.h>

namespace pumice {

// λ_1 >= … >= λ_n of an n×n symmetric matrix, float64 whatever the input's type (shape n). Nothing
// is clamped: of a semi-definite matrix the smallest may come out negative, by about n·ε·λ_1 with
// the ε of the type that the matrix was computed in.
// Throws Error unless `symmetric` passes check_symmetric().
// Cost: 4/3·n³ multiplications and n² numbers of memory.
at::Tensor eigenvalues_descending(const at::Tensor& symmetric);

// The effective dimension Σ λ_i / (λ_i + ridge), in any order of the eigenvalues; at most n.
// Negative eigenvalues of rounding size enter as they are. One below −ridge/100 throws Error, since
// the sum would be one of rounding errors: the matrix is not semi-definite, or the ridge is below
// its accuracy. Throws Error as well unless ridge > 0 and `eigenvalues` is a finite vector.
double effective_dimension(const at::Tensor& eigenvalues, double ridge);

}  // namespace pumice
