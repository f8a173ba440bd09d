#include "pumice/linalg/column_dots.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace pumice {

std::vector<double> column_dots(const at::Tensor& a, const at::Tensor& b) {
  assert(a.dim() == 2 && a.sizes() == b.sizes());
  constexpr std::int64_t rows_at_once = 1 << 16;
  at::Tensor total = at::zeros({a.size(1)}, at::kDouble);
  for (std::int64_t row = 0; row < a.size(0); row += rows_at_once) {
    const std::int64_t rows = std::min(rows_at_once, a.size(0) - row);
    const at::Tensor left = a.narrow(0, row, rows).to(at::kDouble);
    total += (left * b.narrow(0, row, rows).to(at::kDouble)).sum(0);
  }
  return {total.data_ptr<double>(), total.data_ptr<double>() + total.numel()};
}

std::vector<double> column_norms(const at::Tensor& a) {
  std::vector<double> norms = column_dots(a, a);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace pumice
