// Jᵀ H J + μI in weight space, applied without storing J: for solves that are too large for the
// kernel.
#pragma once

#include "pumice/linalg/linear_operator.h"
#include "pumice/linearization/linearization.h"

namespace pumice {

// A v = Jᵀ H (J v) + μ v, p×p, with H = R Rᵀ block by block (R: N×c×k) or H = I if `root` is
// undefined. An application is one tangent pass and one backward pass over all examples: about 5/3
// of a training epoch. A ⪰ μI.
class GaussNewtonOperator final : public LinearOperator {
 public:
  // Refers to `linearization`, which has to live longer. Throws Error unless μ >= 0 and the root
  // fits.
  GaussNewtonOperator(const Linearization& linearization, at::Tensor root, double ridge);

  std::int64_t size() const override { return linearization_.columns(); }
  at::Tensor apply(const at::Tensor& x) const override;  // p, or p×k column by column
  at::Tensor diagonal() const override;                  // one pass over the rows of Rᵀ J

 private:
  const Linearization& linearization_;
  at::Tensor root_;
  double ridge_;
};

// R Rᵀ x for every example: x is N×c, R N×c×k (undefined: x itself).
at::Tensor curvature_product(const at::Tensor& root, const at::Tensor& x);

}  // namespace pumice
