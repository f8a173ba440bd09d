#include "pumice/linearization/unfolding.h"

#include <algorithm>

namespace pumice {

std::int64_t Unfolding::output_extent(int axis) const {
  return (extent[axis] + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) /
             stride[axis] +
         1;
}

std::int64_t Unfolding::positions() const {
  return output_extent(0) * output_extent(1) * output_extent(2);
}

bool Unfolding::is_identity() const {
  for (int axis = 0; axis < 3; ++axis) {
    if (kernel[axis] != 1 || stride[axis] != 1 || padding[axis] != 0) return false;
  }
  return groups == 1;
}

template <typename Scalar>
void unfold(const Unfolding& u, const Scalar* input, std::int64_t group, const PatchRange& range,
            Scalar* patches) {
  const std::int64_t channels = range.channel_end - range.channel_begin;
  const std::int64_t width = range.width();
  const std::int64_t first_channel = group * u.group_channels() + range.channel_begin;
  const std::array<std::int64_t, 3> out{u.output_extent(0), u.output_extent(1), u.output_extent(2)};
  for (std::int64_t tap = range.tap_begin; tap < range.tap_end; ++tap) {
    const std::array<std::int64_t, 3> at_tap{tap / (u.kernel[1] * u.kernel[2]),
                                             tap / u.kernel[2] % u.kernel[1], tap % u.kernel[2]};
    Scalar* column = patches + (tap - range.tap_begin) * channels;
    for (std::int64_t z = 0; z < out[0]; ++z) {
      const std::int64_t from_z = z * u.stride[0] + at_tap[0] * u.dilation[0] - u.padding[0];
      for (std::int64_t y = 0; y < out[1]; ++y) {
        const std::int64_t from_y = y * u.stride[1] + at_tap[1] * u.dilation[1] - u.padding[1];
        const bool row_inside =
            from_z >= 0 && from_z < u.extent[0] && from_y >= 0 && from_y < u.extent[1];
        Scalar* target = column + (z * out[1] + y) * out[2] * width;
        for (std::int64_t x = 0; x < out[2]; ++x, target += width) {
          const std::int64_t from_x = x * u.stride[2] + at_tap[2] * u.dilation[2] - u.padding[2];
          if (row_inside && from_x >= 0 && from_x < u.extent[2]) {
            const Scalar* source =
                input + ((from_z * u.extent[1] + from_y) * u.extent[2] + from_x) * u.channels +
                first_channel;
            std::copy_n(source, channels, target);
          } else {
            std::fill_n(target, channels, Scalar{0});
          }
        }
      }
    }
  }
}

template void unfold(const Unfolding&, const float*, std::int64_t, const PatchRange&, float*);
template void unfold(const Unfolding&, const double*, std::int64_t, const PatchRange&, double*);

}  // namespace pumice
