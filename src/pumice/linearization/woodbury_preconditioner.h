// The inverse of what a few examples say of Jᵀ H J + μI: a preconditioner for conjugate gradients.
#pragma once

#include "pumice/linalg/cholesky.h"
#include "pumice/linalg/linear_operator.h"
#include "pumice/linearization/example_stream.h"

namespace pumice {

// A = J_Eᵀ H_E J_E + μI over n examples E is replaced by what s << n of them, S, tell:
//   P = q·J_Sᵀ H_S J_S + μI,   q = n/s as if the others were like them, q = 1 as if they were not.
// With H_S = R Rᵀ (R: s·c × s·k, block by block) and K = Rᵀ Θ_SS R, by Woodbury's identity
//   P⁻¹ v = (v − J_Sᵀ R (K + (μ/q) I)⁻¹ Rᵀ J_S v) / μ.
// K is factorised once; J_S is never stored. An application is a tangent pass and a backward pass
// over S (six forward passes' work) and two triangular solves of size s·k. P ⪰ μI.
class WoodburyPreconditioner final : public LinearOperator {
 public:
  // `sample` are positions in `stream`, which has to live longer. `factor` is that of K + (μ/q) I
  // (woodbury_matrix), successful. One forward pass over S.
  WoodburyPreconditioner(const ExampleStream& stream, std::vector<std::int64_t> sample,
                         const LogitCurvature& curvature, Cholesky factor, double ridge);

  std::int64_t size() const override { return stream_.columns(); }
  at::Tensor apply(const at::Tensor& x) const override;  // P⁻¹ x: p, or p×k column by column
  at::Tensor diagonal() const override;  // of P⁻¹; costs s·k backward passes over S

 private:
  // J_Sᵀ R y for y of size s·k.
  at::Tensor pulled(const at::Tensor& y) const;

  const ExampleStream& stream_;
  std::vector<std::int64_t> sample_;
  at::Tensor root_;  // R, s×c×k; undefined: H = I
  Cholesky factor_;
  double ridge_;
};

// K + (μ/q) I from the kernel Θ_SS of the sample ((s·c)²) and its root (s×c×k, or undefined).
at::Tensor woodbury_matrix(const at::Tensor& theta, const at::Tensor& root, double ridge,
                           double weight);

// Rᵀ Θ R, (n·k)×(n·k): the Gauss-Newton kernel. Θ itself if `root` (n×c×k) is undefined.
at::Tensor curved_kernel(const at::Tensor& theta, const at::Tensor& root);

// Θ = J Jᵀ of some examples of a stream, (m·c)×(m·c) in float64. With several processes each
// computes the rows of its own examples. Memory as for Linearization::kernel().
at::Tensor kernel_of_examples(const ExampleStream& stream, const std::vector<std::int64_t>& sample,
                              const KernelOptions& options);

}  // namespace pumice
