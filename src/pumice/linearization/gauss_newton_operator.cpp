#include "pumice/linearization/gauss_newton_operator.h"

#include "pumice/core/error.h"

namespace pumice {

at::Tensor curvature_product(const at::Tensor& root, const at::Tensor& x) {
  if (!root.defined()) return x;
  const at::Tensor typed = root.to(x.scalar_type());
  return typed.bmm(typed.transpose(1, 2).bmm(x.unsqueeze(2))).squeeze(2);
}

GaussNewtonOperator::GaussNewtonOperator(const Linearization& linearization, at::Tensor root,
                                         double ridge)
    : linearization_(linearization), root_(std::move(root)), ridge_(ridge) {
  if (!(ridge >= 0)) fail("ridge: ", ridge, ", must be >= 0");
  if (root_.defined() && (root_.dim() != 3 || root_.size(0) != linearization.examples() ||
                          root_.size(1) != linearization.classes())) {
    fail("root: shape ", root_.sizes(), ", must be ", linearization.examples(), "×",
         linearization.classes(), "×k");
  }
}

at::Tensor GaussNewtonOperator::apply(const at::Tensor& x) const {
  check_operand(x, size());
  if (x.dim() == 2) {
    std::vector<at::Tensor> columns;
    for (std::int64_t k = 0; k < x.size(1); ++k) columns.push_back(apply(x.select(1, k)));
    return at::stack(columns, 1);
  }
  const at::Tensor direction = x.to(linearization_.weights().flat.scalar_type()).contiguous();
  const at::Tensor change = curvature_product(root_, linearization_.jvp(direction));
  return linearization_.vjp(change).to(x.scalar_type()).add_(x, ridge_);
}

at::Tensor GaussNewtonOperator::diagonal() const {
  std::optional<at::Tensor> seeds;
  if (root_.defined()) seeds = root_.transpose(1, 2).contiguous();
  return linearization_.sum_of_squared_rows(seeds).add_(ridge_).to(
      linearization_.weights().flat.scalar_type());
}

}  // namespace pumice
