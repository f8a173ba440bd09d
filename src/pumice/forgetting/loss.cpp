#include "pumice/forgetting/loss.h"

#include <cmath>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"

namespace pumice {
namespace {

at::Tensor onehot(const at::Tensor& labels, std::int64_t classes) {
  return at::one_hot(labels, classes).to(at::kDouble);
}

}  // namespace

Loss loss_named(const std::string& name) {
  if (name == "cross-entropy") return Loss::cross_entropy;
  if (name == "squared") return Loss::squared;
  fail("loss: '", name, "' is unknown", suggestion(name, {"cross-entropy", "squared"}));
}

std::string loss_name(Loss loss) {
  return loss == Loss::squared ? "squared" : "cross-entropy";
}

Curvature curvature_named(const std::string& name) {
  if (name == "identity") return Curvature::identity;
  if (name == "softmax") return Curvature::softmax;
  fail("curvature: '", name, "' is unknown", suggestion(name, {"identity", "softmax"}));
}

std::string curvature_name(Curvature curvature) {
  return curvature == Curvature::softmax ? "softmax" : "identity";
}

bool is_identity(Loss loss, Curvature curvature) {
  return loss == Loss::squared || curvature == Curvature::identity;
}

at::Tensor residuals(const at::Tensor& logits, const at::Tensor& labels, Loss loss) {
  const at::Tensor wide = logits.detach().to(at::kDouble);
  const at::Tensor answers = loss == Loss::squared ? wide : wide.softmax(1);
  return answers - onehot(labels, logits.size(1));
}

at::Tensor curvature_root(const at::Tensor& logits, Loss loss, Curvature curvature) {
  if (is_identity(loss, curvature)) return {};
  const at::Tensor shares = logits.detach().to(at::kDouble).softmax(1);
  const at::Tensor q = shares.sqrt();  // unit length
  const std::int64_t classes = q.size(1);
  // The reflection I − v vᵀ/(1 + q_c) with v = q + e_c takes e_c to −q, so that its other columns
  // are orthogonal to q; q_c >= 0 leaves nothing to cancel.
  at::Tensor v = q.clone();
  v.select(1, classes - 1).add_(1);
  const at::Tensor reflection =
      at::eye(classes, q.options()).unsqueeze(0) -
      v.unsqueeze(2) * v.unsqueeze(1) / (1 + q.select(1, classes - 1)).view({-1, 1, 1});
  return (q.unsqueeze(2) * reflection.narrow(2, 0, classes - 1)).contiguous();
}

at::Tensor curvature_product(const at::Tensor& logits, const at::Tensor& x, Loss loss,
                             Curvature curvature) {
  const at::Tensor wide = x.detach().to(at::kDouble);
  if (is_identity(loss, curvature)) return wide;
  const at::Tensor shares = logits.detach().to(at::kDouble).softmax(1);
  const at::Tensor weighted = shares * wide;
  return weighted - shares * weighted.sum(1, /*keepdim=*/true);
}

at::Tensor curvature_trace(const at::Tensor& logits, Loss loss, Curvature curvature) {
  if (is_identity(loss, curvature)) return {};
  return 1 - logits.detach().to(at::kDouble).softmax(1).square().sum(1);
}

at::Tensor most_curved_first(const at::Tensor& trace) {
  return trace.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/true).contiguous();
}

double weight_of_chosen(Loss loss, Curvature curvature, std::int64_t n, std::int64_t s) {
  return is_identity(loss, curvature) ? static_cast<double>(n) / static_cast<double>(s) : 1;
}

double length_on_curvature(const at::Tensor& logits, const at::Tensor& rho, Loss loss,
                           Curvature curvature) {
  const at::Tensor wide = rho.detach().to(at::kDouble);
  if (is_identity(loss, curvature)) return wide.norm().item<double>();
  const at::Tensor shares = logits.detach().to(at::kDouble).softmax(1);
  const at::Tensor scale = at::maximum(shares, wide.abs()).clamp_min(1e-300);
  return std::sqrt((wide.square() / scale).sum().item<double>());
}

}  // namespace pumice
