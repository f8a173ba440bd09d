// Dot products of many vectors at once, accurate whatever the vectors' type.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace pumice {

// aᵀb for each column of a and b, n×k: products and sums in float64, so that float32 vectors lose
// nothing. Cost: n·k multiplications; in blocks of rows, so that no vector is copied whole.
std::vector<double> column_dots(const at::Tensor& a, const at::Tensor& b);

std::vector<double> column_norms(const at::Tensor& a);  // √(aᵀa), likewise

}  // namespace pumice
