#include "pumice/linearization/channel_layout.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace pumice {
namespace {

constexpr std::int64_t block = 16;  // one line of the cache in float32

std::int64_t positions_of(const at::Tensor& image) {
  return image.numel() / std::max<std::int64_t>(1, image.size(0) * image.size(1));
}

// Σ over the positions of one channel that lie side by side.
template <typename Scalar>
void sum_apart(std::int64_t channels, std::int64_t positions, const Scalar* gradient,
               const Scalar* input, const Scalar* mean, Scalar* sums) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const Scalar* from = gradient + c * positions;
    Scalar sum = 0;
    if (input) {
      const Scalar* seen = input + c * positions;
      const Scalar centre = mean[c];
#pragma omp simd reduction(+ : sum)
      for (std::int64_t t = 0; t < positions; ++t) sum += from[t] * (seen[t] - centre);
    } else {
#pragma omp simd reduction(+ : sum)
      for (std::int64_t t = 0; t < positions; ++t) sum += from[t];
    }
    sums[c] = sum;
  }
}

// The same with the channels of one position side by side.
template <typename Scalar>
void sum_interleaved(std::int64_t channels, std::int64_t positions, const Scalar* gradient,
                     const Scalar* input, const Scalar* mean, Scalar* sums) {
  std::fill_n(sums, channels, Scalar{0});
  for (std::int64_t t = 0; t < positions; ++t) {
    const Scalar* from = gradient + t * channels;
    if (input) {
      const Scalar* seen = input + t * channels;
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) sums[c] += from[c] * (seen[c] - mean[c]);
    } else {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) sums[c] += from[c];
    }
  }
}

template <typename Scalar>
at::Tensor channel_sums_as(const at::Tensor& gradient, const at::Tensor& input,
                           const at::Tensor& mean, const at::Tensor& scale) {
  const std::int64_t examples = gradient.size(0), channels = gradient.size(1);
  const std::int64_t positions = positions_of(gradient);
  const bool apart = gradient.is_contiguous();
  const auto in_order = [&](const at::Tensor& image) {
    return apart ? image.contiguous() : channels_last_rows(image);
  };
  const at::Tensor gradients = in_order(gradient);
  const at::Tensor inputs = input.defined() ? in_order(input) : at::Tensor();
  at::Tensor sums = at::empty({examples, channels}, gradient.options());
  const Scalar* centre = input.defined() ? mean.data_ptr<Scalar>() : nullptr;
  at::parallel_for(0, examples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t offset = i * positions * channels;
      (apart ? sum_apart<Scalar>
             : sum_interleaved<Scalar>)(channels, positions, gradients.data_ptr<Scalar>() + offset,
                                        input.defined() ? inputs.data_ptr<Scalar>() + offset
                                                        : nullptr,
                                        centre, sums.data_ptr<Scalar>() + i * channels);
    }
  });
  return input.defined() ? sums.mul_(scale) : sums;
}

}  // namespace

template <typename Scalar>
void copy_channels_last(const at::Tensor& image, std::int64_t example_stride,
                        std::int64_t position_stride, Scalar* to) {
  const Scalar* from = image.data_ptr<Scalar>();
  const std::int64_t channels = image.size(1), positions = positions_of(image);
  const std::int64_t blocks = (positions + block - 1) / block;
  at::parallel_for(0, image.size(0) * blocks, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const Scalar* own = from + task / blocks * channels * positions;
      Scalar* target = to + task / blocks * example_stride;
      const std::int64_t first = task % blocks * block;
      const std::int64_t last = std::min(first + block, positions);
      for (std::int64_t channel = 0; channel < channels; channel += block) {
        const std::int64_t width = std::min(block, channels - channel);
        for (std::int64_t t = first; t < last; ++t) {
          const Scalar* column = own + channel * positions + t;
          Scalar* row = target + t * position_stride + channel;
          for (std::int64_t c = 0; c < width; ++c) row[c] = column[c * positions];
        }
      }
    }
  });
}
template void copy_channels_last<float>(const at::Tensor&, std::int64_t, std::int64_t, float*);
template void copy_channels_last<double>(const at::Tensor&, std::int64_t, std::int64_t, double*);

at::Tensor channels_last_rows(const at::Tensor& image) {
  const std::int64_t examples = image.size(0), channels = image.size(1);
  const std::int64_t positions = positions_of(image);
  if (!image.is_contiguous() || channels == 1 || positions == 1 || !image.is_floating_point()) {
    std::vector<std::int64_t> order{0};
    for (std::int64_t axis = 2; axis < image.dim(); ++axis) order.push_back(axis);
    order.push_back(1);
    return image.permute(order).contiguous().view({examples, -1});
  }
  at::Tensor rows = at::empty({examples, positions * channels}, image.options());
  AT_DISPATCH_FLOATING_TYPES(image.scalar_type(), "channels_last_rows", [&] {
    copy_channels_last(image, positions * channels, channels, rows.data_ptr<scalar_t>());
  });
  return rows;
}

at::Tensor channel_sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& mean,
                        const at::Tensor& scale) {
  at::Tensor sums;
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "channel_sums", [&] {
    sums = channel_sums_as<scalar_t>(gradient, input, mean, scale);
  });
  return sums;
}

}  // namespace pumice
