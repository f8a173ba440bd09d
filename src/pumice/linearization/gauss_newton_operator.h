// Jᵀ H J + μI in weight space, applied without storing J: for solves that are too large for the
// kernel.
#pragma once

#include "pumice/linalg/linear_operator.h"
#include "pumice/linearization/example_stream.h"

namespace pumice {

// A v = Jᵀ H (J v) + μ v, p×p, over some examples of a stream. An application is one streaming pass
// over them: 5/3 of a training epoch. A ⪰ μI.
class GaussNewtonOperator final : public LinearOperator {
 public:
  // Refers to `stream`, which has to live longer. Throws Error unless μ >= 0.
  GaussNewtonOperator(const ExampleStream& stream, std::vector<std::int64_t> examples,
                      LogitCurvature curvature, double ridge);

  std::int64_t size() const override { return stream_.columns(); }
  at::Tensor apply(const at::Tensor& x) const override;  // p, or p×k column by column
  at::Tensor diagonal() const override;                  // one pass over the rows of Rᵀ J

 private:
  const ExampleStream& stream_;
  std::vector<std::int64_t> examples_;
  LogitCurvature curvature_;
  double ridge_;
};

// H x = R Rᵀ x example by example, x of shape N×c; x itself if `root` is undefined.
at::Tensor curvature_product(const at::Tensor& root, const at::Tensor& x);

}  // namespace pumice
