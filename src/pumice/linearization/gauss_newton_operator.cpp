#include "pumice/linearization/gauss_newton_operator.h"

#include "pumice/core/error.h"

namespace pumice {

at::Tensor curvature_product(const at::Tensor& root, const at::Tensor& x) {
  if (!root.defined()) return x;
  const at::Tensor typed = root.to(x.scalar_type());
  return typed.bmm(typed.transpose(1, 2).bmm(x.unsqueeze(2))).squeeze(2);
}

GaussNewtonOperator::GaussNewtonOperator(const ExampleStream& stream,
                                         std::vector<std::int64_t> examples,
                                         LogitCurvature curvature, double ridge)
    : stream_(stream),
      examples_(std::move(examples)),
      curvature_(std::move(curvature)),
      ridge_(ridge) {
  if (!(ridge >= 0)) fail("ridge: ", ridge, ", must be >= 0");
}

at::Tensor GaussNewtonOperator::apply(const at::Tensor& x) const {
  check_operand(x, size());
  if (x.dim() == 2) {
    std::vector<at::Tensor> columns;
    for (std::int64_t k = 0; k < x.size(1); ++k) columns.push_back(apply(x.select(1, k)));
    return at::stack(columns, 1);
  }
  const at::Tensor direction = x.to(stream_.network().weights().flat.scalar_type()).contiguous();
  return stream_.gauss_newton_product(examples_, direction, curvature_)
      .to(x.scalar_type())
      .add_(x, ridge_);
}

at::Tensor GaussNewtonOperator::diagonal() const {
  const at::Tensor squares =
      stream_.sum(examples_, {size()}, [&](const ExampleStream::Batch& batch, at::Tensor& sum) {
        const Linearization own = stream_.network().with_inputs(batch.inputs);
        std::optional<at::Tensor> seeds;
        if (!curvature_.is_identity()) {
          seeds = curvature_.root(own.logits()).to(batch.inputs.scalar_type()).transpose(1, 2);
        }
        sum.add_(own.sum_of_squared_rows(seeds));
      });
  return squares.add_(ridge_).to(stream_.network().weights().flat.scalar_type());
}

}  // namespace pumice
