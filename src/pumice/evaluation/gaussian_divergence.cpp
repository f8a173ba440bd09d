#include "pumice/evaluation/gaussian_divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pumice/core/error.h"
#include "pumice/linalg/symmetric_matrix.h"

namespace pumice {
namespace {

void check_variance(const char* name, const at::Tensor& variance, std::int64_t size) {
  if (variance.dim() != 1 || variance.numel() != size) {
    fail(name, ": shape ", variance.sizes(), ", must be ", size, " values");
  }
  if (!variance.isfinite().all().item<bool>() || variance.min().item<double>() < 0) {
    fail(name, ": smallest value ", variance.min().item<double>(), ", all must be finite and >= 0");
  }
}

void check_difference(const at::Tensor& difference) {
  if (difference.dim() != 1 || difference.numel() < 1) {
    fail("difference of means: shape ", difference.sizes(), ", must be a vector");
  }
  if (!difference.isfinite().all().item<bool>()) {
    fail("difference of means: holds a value that is not finite");
  }
}

// The factor of the largest leading block that is positive definite to working precision.
struct LeadingFactor {
  at::Tensor factor;      // m×m
  std::int64_t size = 0;  // m; k if nothing failed
  double pivot = 0;       // the one that failed, as a share of its diagonal; 0: not positive
};

LeadingFactor leading_factor(const at::Tensor& matrix, double tolerance) {
  std::int64_t size = matrix.size(0);
  double pivot = 0;
  while (size > 0) {
    const at::Tensor part = matrix.narrow(0, 0, size).narrow(1, 0, size);
    const auto [factor, info] = at::linalg_cholesky_ex(part);
    if (const auto failed = info.item<std::int64_t>(); failed > 0) {
      size = failed - 1;
      pivot = 0;
      continue;
    }
    const at::Tensor inverse =
        at::linalg_solve_triangular(factor, at::eye(size, at::kDouble), /*upper=*/false);
    const at::Tensor amplified = inverse.square().mv(part.diagonal());
    const at::Tensor bad = amplified.ge(1 / tolerance).nonzero();
    if (bad.size(0) == 0) return {factor, size, pivot};
    size = bad[0][0].item<std::int64_t>();
    pivot = (factor[size][size].square() / part[size][size]).item<double>();
  }
  return {{}, 0, pivot};
}

std::string singular(const char* whose, const LeadingFactor& factor, std::int64_t size) {
  return text("the covariance of ", whose, " is singular: pivot ", factor.size + 1, " of ", size,
              factor.pivot > 0
                  ? text(" is ", factor.pivot, " of its diagonal, no more than rounding")
                  : " is not positive",
              ", so some combination of the coordinates has no noise");
}

}  // namespace

double rounding_of(at::ScalarType type) {
  return type == at::kDouble ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
}

DenseDivergenceOptions tolerance_of_entries(double rounding, std::int64_t size) {
  const auto k = static_cast<double>(size);
  return {.entry_tolerance = std::max(std::sqrt(k) * rounding, k * rounding_of(at::kDouble))};
}

GaussianDivergence infinite_divergence(std::int64_t dimension, std::string reason) {
  const double infinite = std::numeric_limits<double>::infinity();
  return {.quadratic = infinite,
          .spread = infinite,
          .dimension = dimension,
          .reason = std::move(reason)};
}

GaussianDivergence diagonal_divergence(const at::Tensor& difference, const at::Tensor& variance,
                                       const at::Tensor& reference_variance) {
  check_difference(difference);
  const std::int64_t size = difference.numel();
  check_variance("variance", variance, size);
  check_variance("reference variance", reference_variance, size);
  const at::Tensor own = variance.to(at::kDouble);
  const at::Tensor reference = reference_variance.to(at::kDouble);
  const auto without = own.eq(0).logical_or(reference.eq(0)).sum().item<std::int64_t>();
  if (without > 0) {
    return infinite_divergence(size, text(without, " of ", size, " values have no noise"));
  }
  const at::Tensor excess = (own - reference) / reference;
  return {.quadratic = 0.5 * (difference.to(at::kDouble).square() / reference).sum().item<double>(),
          .spread = 0.5 * (excess - excess.log1p()).sum().item<double>(),
          .dimension = size};
}

std::vector<GaussianDivergence> nested_divergences(const at::Tensor& difference,
                                                   const at::Tensor& covariance,
                                                   const at::Tensor& reference_covariance,
                                                   std::int64_t block,
                                                   const DenseDivergenceOptions& options) {
  check_difference(difference);
  const std::int64_t size = difference.numel();
  if (block < 1 || size % block != 0) {
    fail("block: ", block, ", must divide the number of coordinates, ", size);
  }
  check_symmetric("covariance", covariance);
  check_symmetric("reference covariance", reference_covariance);
  if (covariance.size(0) != size || reference_covariance.size(0) != size) {
    fail("covariances: ", covariance.size(0), " and ", reference_covariance.size(0),
         " rows, must have ", size);
  }
  const double tolerance =
      options.entry_tolerance.value_or(static_cast<double>(size) * rounding_of(at::kDouble));
  if (!(tolerance > 0)) fail("tolerance of entries: ", tolerance, ", must be > 0");
  const LeadingFactor own = leading_factor(covariance.to(at::kDouble), tolerance);
  const LeadingFactor reference = leading_factor(reference_covariance.to(at::kDouble), tolerance);
  const std::int64_t common = std::min(own.size, reference.size);

  std::vector<GaussianDivergence> results;
  if (common > 0) {
    const auto leading = [&](const at::Tensor& factor) {
      return factor.narrow(0, 0, common).narrow(1, 0, common);
    };
    const at::Tensor column = difference.narrow(0, 0, common).to(at::kDouble).unsqueeze(1);
    const at::Tensor solved = at::linalg_solve_triangular(
        leading(reference.factor), at::cat({leading(own.factor), column}, 1), /*upper=*/false);
    const at::Tensor whitened = solved.select(1, common).square().cumsum(0);
    const at::Tensor ratio = solved.narrow(1, 0, common).tril();
    // W_ii² − 1 − log W_ii² for each i, and the squares beside the diagonal: all terms are >= 0.
    const at::Tensor excess = ratio.diagonal().square() - 1;
    const at::Tensor beside = ratio.tril(-1).square().sum(1);
    const at::Tensor spread = (excess - excess.log1p() + beside).cumsum(0);
    for (std::int64_t k = block; k <= common; k += block) {
      results.push_back({.quadratic = 0.5 * whitened[k - 1].item<double>(),
                         .spread = 0.5 * spread[k - 1].item<double>(),
                         .dimension = k});
    }
  }
  const bool reference_failed_first = reference.size <= own.size;
  const std::string reason = reference_failed_first ? singular("the reference", reference, size)
                                                    : singular("the model", own, size);
  for (auto k = static_cast<std::int64_t>(results.size() + 1) * block; k <= size; k += block) {
    results.push_back(infinite_divergence(k, reason));
  }
  return results;
}

GaussianDivergence dense_divergence(const at::Tensor& difference, const at::Tensor& covariance,
                                    const at::Tensor& reference_covariance,
                                    const DenseDivergenceOptions& options) {
  return nested_divergences(difference, covariance, reference_covariance,
                            std::max<std::int64_t>(difference.numel(), 1), options)
      .front();
}

}  // namespace pumice
