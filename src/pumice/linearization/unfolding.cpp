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

std::vector<std::vector<PixelRun>> pixel_runs(const Unfolding& u) {
  const std::array<std::int64_t, 3> out{u.output_extent(0), u.output_extent(1), u.output_extent(2)};
  std::vector<std::vector<PixelRun>> runs(static_cast<std::size_t>(u.taps()));
  for (std::int64_t tap = 0; tap < u.taps(); ++tap) {
    std::vector<PixelRun>& of_tap = runs[static_cast<std::size_t>(tap)];
    const std::array<std::int64_t, 3> offset = u.tap_offset(tap);
    for (std::int64_t position = 0; position < u.positions(); ++position) {
      const std::array<std::int64_t, 3> place{position / (out[1] * out[2]),
                                              position / out[2] % out[1], position % out[2]};
      std::int64_t pixel = 0;
      bool inside = true;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t from = place[axis] * u.stride[axis] + offset[axis];
        inside = inside && from >= 0 && from < u.extent[axis];
        pixel = pixel * u.extent[axis] + from;
      }
      if (!inside) continue;
      const bool follows = !of_tap.empty() &&
                           of_tap.back().position + of_tap.back().length == position &&
                           of_tap.back().pixel + of_tap.back().length == pixel;
      if (follows) {
        ++of_tap.back().length;
      } else {
        of_tap.push_back({position, pixel, 1});
      }
    }
  }
  return runs;
}

std::array<std::int64_t, 3> Unfolding::tap_offset(std::int64_t tap) const {
  return {tap / (kernel[1] * kernel[2]) * dilation[0] - padding[0],
          tap / kernel[2] % kernel[1] * dilation[1] - padding[1],
          tap % kernel[2] * dilation[2] - padding[2]};
}

template <typename Scalar>
void unfold(const Unfolding& u, const Scalar* input, std::int64_t group, const PatchRange& range,
            Scalar* patches) {
  const std::int64_t channels = range.channel_end - range.channel_begin;
  const std::int64_t width = range.width();
  const std::int64_t first_channel = group * u.group_channels() + range.channel_begin;
  const std::array<std::int64_t, 3> out{u.output_extent(0), u.output_extent(1), u.output_extent(2)};
  for (std::int64_t tap = range.tap_begin; tap < range.tap_end; ++tap) {
    const std::array<std::int64_t, 3> offset = u.tap_offset(tap);
    Scalar* column = patches + (tap - range.tap_begin) * channels;
    for (std::int64_t z = 0; z < out[0]; ++z) {
      const std::int64_t from_z = z * u.stride[0] + offset[0];
      for (std::int64_t y = 0; y < out[1]; ++y) {
        const std::int64_t from_y = y * u.stride[1] + offset[1];
        const bool row_inside =
            from_z >= 0 && from_z < u.extent[0] && from_y >= 0 && from_y < u.extent[1];
        Scalar* target = column + (z * out[1] + y) * out[2] * width;
        for (std::int64_t x = 0; x < out[2]; ++x, target += width) {
          const std::int64_t from_x = x * u.stride[2] + offset[2];
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
