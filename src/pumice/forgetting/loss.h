// What was minimised: residuals and curvature of the loss with respect to the logits.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

namespace pumice {

// Sums over examples of: cross_entropy  −log softmax(f)_y;  squared  ½ |f − onehot(y)|².
enum class Loss { cross_entropy, squared };
// What stands for the Hessian H of the loss with respect to the logits. `softmax`: the true one of
// cross-entropy, diag(π) − ππᵀ. For squared loss both are the identity.
enum class Curvature { identity, softmax };

Loss loss_named(const std::string& name);  // throws Error with the known names
std::string loss_name(Loss loss);
Curvature curvature_named(const std::string& name);
std::string curvature_name(Curvature curvature);

// Whether H is the identity, the same for all examples.
bool is_identity(Loss loss, Curvature curvature);

// r: softmax(f) − onehot(y), or f − onehot(y). logits N×c, labels N → N×c, float64.
at::Tensor residuals(const at::Tensor& logits, const at::Tensor& labels, Loss loss);

// R with H = R Rᵀ for each example: N×c×(c−1), float64; undefined where H is the identity.
//   softmax: R = diag(√π) Q, where the columns of Q are an orthonormal basis of what is orthogonal
//   to √π (a Householder reflection without its last column). H has rank c − 1.
at::Tensor curvature_root(const at::Tensor& logits, Loss loss, Curvature curvature);

// H x for each example, x of shape N×c → N×c, float64, without R: softmax π∘x − π (πᵀx).
at::Tensor curvature_product(const at::Tensor& logits, const at::Tensor& x, Loss loss,
                             Curvature curvature);

// tr H of each example, N, float64; undefined where H is the identity. softmax: 1 − |π|². Examples
// that the model is sure of have next to none.
at::Tensor curvature_trace(const at::Tensor& logits, Loss loss, Curvature curvature);

// Positions by falling trace, equal ones in their order: N, int64.
at::Tensor most_curved_first(const at::Tensor& trace);

// What each of s examples counts for in a preconditioner of all n: 1 where H differs, since the
// most curved are chosen and stand for themselves; n/s where it is the identity, and those that
// were drawn stand for all.
double weight_of_chosen(Loss loss, Curvature curvature, std::int64_t n, std::int64_t s);

// How long residuals ρ (N×c) are beside R η with |η| = 1: identity |ρ|; softmax √Σ ρ²/max(π, |ρ|),
// which is |R⁺ρ| where |ρ| <= π, and at most √Σ|ρ| where the model is wrong and |R⁺ρ| has no limit.
double length_on_curvature(const at::Tensor& logits, const at::Tensor& rho, Loss loss,
                           Curvature curvature);

}  // namespace pumice
