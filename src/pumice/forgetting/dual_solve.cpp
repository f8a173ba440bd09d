#include "pumice/forgetting/dual_solve.h"

#include "pumice/core/error.h"
#include "pumice/linearization/gauss_newton_operator.h"
#include "pumice/linearization/woodbury_preconditioner.h"

namespace pumice {
namespace {

at::Tensor flat(const at::Tensor& by_example) {
  return by_example.reshape({-1});
}

}  // namespace

at::Tensor chosen(const at::Tensor& by_example, const std::vector<std::int64_t>& examples) {
  return by_example.index_select(0, at::tensor(examples, at::kLong));
}

at::Tensor kernel_of(const at::Tensor& theta, const std::vector<std::int64_t>& examples,
                     std::int64_t classes) {
  if (static_cast<std::int64_t>(examples.size()) * classes == theta.size(0)) {
    bool all = true;
    for (std::size_t i = 0; i < examples.size(); ++i) {
      all = all && examples[i] == static_cast<std::int64_t>(i);
    }
    if (all) return theta;
  }
  std::vector<std::int64_t> rows;
  for (const std::int64_t example : examples) {
    for (std::int64_t c = 0; c < classes; ++c) rows.push_back(example * classes + c);
  }
  const at::Tensor index = at::tensor(rows, at::kLong);
  return theta.index_select(0, index).index_select(1, index);
}

DualSolution solve_dual(const DualSystem& system, double ridge, const at::Tensor& right_side) {
  if (!(ridge > 0)) fail("ridge: ", ridge, ", must be > 0");
  at::Tensor matrix = curved_kernel(system.theta, system.root);
  if (matrix.is_same(system.theta)) matrix = matrix.clone();
  // The two halves were summed in different orders; the factorization reads one of them.
  matrix = (matrix + matrix.t()).mul_(0.5);
  matrix.diagonal().add_(ridge);
  const Cholesky cholesky = Cholesky::factorize(matrix);
  DualSolution solution{.coefficients = {}, .factorization = cholesky.summary()};
  if (!cholesky.summary().succeeded) return solution;
  solution.condition_estimate = cholesky.condition_estimate();
  const at::Tensor b = right_side.to(at::kDouble);
  const auto times_theta = [&](const at::Tensor& x) {
    return system.theta.mv(flat(x)).view(x.sizes());
  };
  if (!system.root.defined()) {
    solution.coefficients = cholesky.solve(flat(b)).view(b.sizes());
  } else {
    const at::Tensor& root = system.root;
    const at::Tensor pulled = root.transpose(1, 2).bmm(times_theta(b).unsqueeze(2)).squeeze(2);
    const at::Tensor solved = cholesky.solve(flat(pulled)).view(pulled.sizes());
    solution.coefficients = (b - root.bmm(solved.unsqueeze(2)).squeeze(2)) / ridge;
  }
  const at::Tensor& beta = solution.coefficients;
  const at::Tensor left = curvature_product(system.root, times_theta(beta)) + beta * ridge;
  const double size = b.norm().item<double>();
  solution.relative_residual = size > 0 ? (left - b).norm().item<double>() / size : 0;
  return solution;
}

}  // namespace pumice
