// The precondition that everything in this room shares: a finite symmetric matrix.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace pumice {

// How far |a_ij − a_ji| may be from zero, relative to max |a|: 1e-10 for float64, 1e-5 for float32.
// That is far above what sums in another order differ by (a kernel block and its mirror image) and
// far below any mistake.
double symmetry_tolerance(at::ScalarType type);

// Throws Error with `name`, the worst element and the rule unless `matrix` is n×n with n >= 1,
// float32 or float64, finite, and symmetric within the tolerance. Changes nothing: whoever wants
// (A + Aᵀ)/2 has to say so.
// Cost: O(n²) time, 2·1024·n numbers of memory.
void check_symmetric(const std::string& name, const at::Tensor& matrix);

}  // namespace pumice
