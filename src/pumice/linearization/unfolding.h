// How a layer reads its input: which patch of values each output position sees.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <vector>

namespace pumice {

// A convolution over up to three axes (missing ones have extent 1), or a linear layer (one tap).
// Input of one example: extent[0]×extent[1]×extent[2]×channels, channels last. Patch of position t:
// taps × channels of one group, so that column k of the patch matrix is tap·group_channels +
// channel.
struct Unfolding {
  std::array<std::int64_t, 3> extent{1, 1, 1};
  std::array<std::int64_t, 3> kernel{1, 1, 1};
  std::array<std::int64_t, 3> stride{1, 1, 1};
  std::array<std::int64_t, 3> padding{0, 0, 0};
  std::array<std::int64_t, 3> dilation{1, 1, 1};
  std::int64_t channels = 1;
  std::int64_t groups = 1;

  std::int64_t output_extent(int axis) const;
  std::int64_t positions() const;  // T
  // The pixel that tap reads at position 0, along each axis; negative where that is padding.
  std::array<std::int64_t, 3> tap_offset(std::int64_t tap) const;
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t group_channels() const { return channels / groups; }
  std::int64_t columns() const { return taps() * group_channels(); }  // K, of one group
  std::int64_t input_size() const { return extent[0] * extent[1] * extent[2] * channels; }
  std::int64_t pixels() const { return extent[0] * extent[1] * extent[2]; }

  bool operator==(const Unfolding&) const = default;
};

// A rectangle of the patch matrix: some taps, some channels of each.
struct PatchRange {
  std::int64_t tap_begin = 0, tap_end = 0;
  std::int64_t channel_begin = 0, channel_end = 0;

  std::int64_t width() const { return (tap_end - tap_begin) * (channel_end - channel_begin); }
};

inline PatchRange whole_patch(const Unfolding& unfolding) {
  return {0, unfolding.taps(), 0, unfolding.group_channels()};
}

// Positions that follow each other and read pixels that follow each other, through one tap.
struct PixelRun {
  std::int64_t position = 0, pixel = 0, length = 0;
};

// For each tap, the runs of positions that read inside the image. Two positions t and t' then have
// the product of their patches Σ_tap <pixel(t, tap), pixel'(t', tap)>: products of pixels, summed
// along runs, taps times fewer multiplications than products of patches where strides are 1.
std::vector<std::vector<PixelRun>> pixel_runs(const Unfolding& unfolding);

// Patches of one example and group, T × range.width(), zero where a patch leaves the image.
template <typename Scalar>
void unfold(const Unfolding& unfolding, const Scalar* input, std::int64_t group,
            const PatchRange& range, Scalar* patches);

}  // namespace pumice
