// A plane in the space of weights: for pictures of training paths and losses.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <vector>

namespace pumice {

using PlanePoint = std::array<double, 2>;  // x, y

struct WeightPlane {
  at::Tensor origin;  // p, float64
  at::Tensor axes;    // 2×p, float64, orthonormal rows
};

// Of the nearest point of the plane. `flat` has p values.
PlanePoint coordinates(const WeightPlane& plane, const at::Tensor& flat);
at::Tensor point_at(const WeightPlane& plane, PlanePoint point);  // p, float64

// Origin at `origin`, the first axis towards `first`, the second so that `second` lies in the plane
// with y > 0. Throws Error if the three are on a line.
WeightPlane plane_through(const at::Tensor& origin, const at::Tensor& first,
                          const at::Tensor& second);

// The two principal components of at least three points (p values each): the directions in which
// they differ most, around their mean. From the Gram matrix of the centred points in float64, by
// blocks of columns: cost M²·p for M points, memory three p beside the points. Signs: the point
// that lies farthest out along an axis has a positive coordinate.
struct PrincipalPlane {
  WeightPlane plane;
  std::array<double, 2> explained{};  // shares of the total variance
};
PrincipalPlane principal_plane(const std::vector<at::Tensor>& points);

// Gaussian noise with diagonal variance (p values), seen in the plane: standard deviations along
// both axes and their covariance.
struct PlaneNoise {
  double x = 0, y = 0, xy = 0;
};
PlaneNoise noise_in(const WeightPlane& plane, const at::Tensor& variance);

}  // namespace pumice
