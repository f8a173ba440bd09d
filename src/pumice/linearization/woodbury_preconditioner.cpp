#include "pumice/linearization/woodbury_preconditioner.h"

#include <cassert>

#include "pumice/core/error.h"

namespace pumice {

at::Tensor curved_kernel(const at::Tensor& theta, const at::Tensor& root) {
  if (!root.defined()) return theta;
  const std::int64_t examples = root.size(0), classes = root.size(1), rank = root.size(2);
  const at::Tensor turned = root.transpose(1, 2);  // n×k×c
  const at::Tensor half = turned.bmm(theta.view({examples, classes, -1}))
                              .view({examples * rank, examples, classes})
                              .transpose(0, 1);  // n × n·k × c
  return half.bmm(root).transpose(0, 1).reshape({examples * rank, examples * rank});
}

at::Tensor woodbury_matrix(const at::Tensor& theta, const at::Tensor& root, double ridge,
                           double weight) {
  const at::Tensor kernel = curved_kernel(theta, root);
  // The two halves were summed in different orders; the factorization reads one of them.
  at::Tensor matrix = (kernel + kernel.t()).mul_(0.5);
  matrix.diagonal().add_(ridge / weight);
  return matrix;
}

at::Tensor kernel_of_examples(const ExampleStream& stream, const std::vector<std::int64_t>& sample,
                              const KernelOptions& options) {
  const std::int64_t classes = stream.classes();
  const auto rows = static_cast<std::int64_t>(sample.size()) * classes;
  const Linearization whole =
      stream.network().with_inputs(stream.inputs().at(at::tensor(sample, at::kLong)));
  const auto together = static_cast<std::int64_t>(sample.size());
  const at::Tensor sum = stream.sum(
      sample, {rows, rows},
      [&](const ExampleStream::Batch& batch, at::Tensor& theta) {
        if (batch.places.numel() == together) {
          theta.copy_(whole.kernel(options).theta);
          return;
        }
        const Linearization own = stream.network().with_inputs(batch.inputs);
        theta.view({together, classes, rows})
            .index_copy_(0, batch.places,
                         own.kernel(whole, options).theta.view({-1, classes, rows}));
      },
      together);
  return (sum + sum.t()).mul_(0.5);
}

WoodburyPreconditioner::WoodburyPreconditioner(const ExampleStream& stream,
                                               std::vector<std::int64_t> sample,
                                               const LogitCurvature& curvature, Cholesky factor,
                                               double ridge)
    : stream_(stream), sample_(std::move(sample)), factor_(std::move(factor)), ridge_(ridge) {
  if (!(ridge > 0)) fail("ridge: ", ridge, ", must be > 0");
  assert(factor_.summary().succeeded);
  if (!curvature.is_identity()) root_ = curvature.root(stream_.logits(sample_)).to(at::kDouble);
  const auto rows = static_cast<std::int64_t>(sample_.size()) *
                    (root_.defined() ? root_.size(2) : stream_.classes());
  if (factor_.summary().size != rows) {
    fail("preconditioner: a factor of size ", factor_.summary().size, ", must be ", rows, " for ",
         sample_.size(), " examples");
  }
}

at::Tensor WoodburyPreconditioner::pulled(const at::Tensor& y) const {
  const auto examples = static_cast<std::int64_t>(sample_.size());
  const at::Tensor rows = y.view({examples, -1});
  return stream_.vjp(sample_, root_.defined() ? root_.bmm(rows.unsqueeze(2)).squeeze(2) : rows);
}

at::Tensor WoodburyPreconditioner::apply(const at::Tensor& x) const {
  check_operand(x, size());
  if (x.dim() == 2) {
    std::vector<at::Tensor> columns;
    for (std::int64_t k = 0; k < x.size(1); ++k) columns.push_back(apply(x.select(1, k)));
    return at::stack(columns, 1);
  }
  at::Tensor seen = stream_.jvp(sample_, x.contiguous());
  if (root_.defined()) seen = root_.transpose(1, 2).bmm(seen.unsqueeze(2)).squeeze(2);
  const at::Tensor known = pulled(factor_.solve(seen.reshape({-1})));
  return (x.to(at::kDouble) - known).div_(ridge_).to(x.scalar_type());
}

at::Tensor WoodburyPreconditioner::diagonal() const {
  // With K + (μ/q) I = L Lᵀ the subtracted matrix is XᵀX, X = L⁻¹ Rᵀ J_S; its row i is the pull of
  // row i of L⁻¹.
  const std::int64_t rows = factor_.summary().size;
  const at::Tensor inverse =
      at::linalg_solve_triangular(factor_.factor(), at::eye(rows, at::kDouble), /*upper=*/false);
  at::Tensor squares = at::zeros({size()}, at::kDouble);
  for (std::int64_t i = 0; i < rows; ++i) {
    squares.add_(pulled(inverse.select(0, i).contiguous()).square_());
  }
  return (1 - squares).div_(ridge_).to(stream_.network().weights().flat.scalar_type());
}

}  // namespace pumice
