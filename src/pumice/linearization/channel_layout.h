// Images and their gradients, n×C×…, in whichever order of memory LibTorch left them: channel by
// channel, or channels last.
#pragma once

#include <ATen/ATen.h>

namespace pumice {

// Channels (axis 1) last: n×(…·C). Nothing is copied if they already are; otherwise the copy goes
// in blocks, since LibTorch's own takes several times as long.
at::Tensor channels_last_rows(const at::Tensor& image);

// The same into `to`: the channels of position t of example i go to row i·example_stride +
// t·position_stride. `image` must be contiguous (channel by channel).
template <typename Scalar>
void copy_channels_last(const at::Tensor& image, std::int64_t example_stride,
                        std::int64_t position_stride, Scalar* to);

// Σ over positions of one example, channel by channel: n×C; weighted by (input − mean)·scale, mean
// and scale C values each, if an input of the gradient's shape is given. LibTorch's sum over these
// axes takes five times as long, and the weighted one needs two more tensors of the input's size.
at::Tensor channel_sums(const at::Tensor& gradient, const at::Tensor& input = {},
                        const at::Tensor& mean = {}, const at::Tensor& scale = {});

}  // namespace pumice
