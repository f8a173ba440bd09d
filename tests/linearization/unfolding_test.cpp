#include "pumice/linearization/unfolding.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace pumice {
namespace {

at::Tensor unfolded(const Unfolding& unfolding, const at::Tensor& image, std::int64_t group,
                    const PatchRange& range) {
  const at::Tensor last = image.permute({1, 2, 0}).contiguous();
  const at::Tensor patches =
      torch::full({unfolding.positions(), range.width()}, -7, image.options());
  unfold(unfolding, last.data_ptr<double>(), group, range, patches.data_ptr<double>());
  return patches;
}

// at::im2col lists channels before taps; ours lists taps before channels.
at::Tensor reference(const Unfolding& u, const at::Tensor& image, std::int64_t group) {
  const at::Tensor own = image.narrow(0, group * u.group_channels(), u.group_channels());
  const at::Tensor columns =
      at::im2col(own.unsqueeze(0), {u.kernel[1], u.kernel[2]}, {u.dilation[1], u.dilation[2]},
                 {u.padding[1], u.padding[2]}, {u.stride[1], u.stride[2]})[0];
  return columns.view({u.group_channels(), u.taps(), -1}).permute({2, 1, 0}).flatten(1);
}

TEST(Unfolding, PatchesEqualLibTorchsIm2colForStridePaddingDilationAndGroups) {
  torch::manual_seed(1);
  const at::Tensor image = torch::randn({6, 9, 8}, at::kDouble);
  for (const std::int64_t groups : {1, 2, 6}) {
    const Unfolding unfolding{.extent = {1, 9, 8},
                              .kernel = {1, 3, 2},
                              .stride = {1, 2, 1},
                              .padding = {0, 2, 1},
                              .dilation = {1, 2, 3},
                              .channels = 6,
                              .groups = groups};
    for (std::int64_t group = 0; group < groups; ++group) {
      EXPECT_TRUE(torch::equal(unfolded(unfolding, image, group, whole_patch(unfolding)),
                               reference(unfolding, image, group)));
    }
  }
}

TEST(Unfolding, ARangeOfTapsAndChannelsIsThatPartOfTheWholePatch) {
  const at::Tensor image = torch::randn({4, 5, 5}, at::kDouble);
  const Unfolding unfolding{
      .extent = {1, 5, 5}, .kernel = {1, 3, 3}, .padding = {0, 1, 1}, .channels = 4};
  const at::Tensor whole = unfolded(unfolding, image, 0, whole_patch(unfolding)).view({25, 9, 4});
  const PatchRange range{2, 7, 1, 3};
  EXPECT_TRUE(torch::equal(unfolded(unfolding, image, 0, range),
                           whole.narrow(1, 2, 5).narrow(2, 1, 2).flatten(1)));
}

TEST(Unfolding, ProductsOfPixelsAlongRunsAddUpToProductsOfPatches) {
  torch::manual_seed(2);
  const at::Tensor left = torch::randn({3, 2, 5, 6}, at::kDouble);
  const at::Tensor right = torch::randn({3, 2, 5, 6}, at::kDouble);
  for (const std::int64_t stride : {1, 2}) {
    const Unfolding unfolding{.extent = {2, 5, 6},
                              .kernel = {2, 3, 3},
                              .stride = {1, stride, 1},
                              .padding = {1, 1, 2},
                              .dilation = {1, 1, 2},
                              .channels = 3};
    const auto channels_last = [](const at::Tensor& image) {
      return image.permute({1, 2, 3, 0}).contiguous();
    };
    const auto patches = [&](const at::Tensor& image) {
      const at::Tensor out =
          torch::empty({unfolding.positions(), unfolding.columns()}, at::kDouble);
      unfold(unfolding, channels_last(image).data_ptr<double>(), 0, whole_patch(unfolding),
             out.data_ptr<double>());
      return out;
    };
    const at::Tensor pixels =
        channels_last(left).view({-1, 3}).mm(channels_last(right).view({-1, 3}).t());
    at::Tensor sum = torch::zeros({unfolding.positions(), unfolding.positions()}, at::kDouble);
    for (const auto& of_tap : pixel_runs(unfolding)) {
      for (const PixelRun& rows : of_tap) {
        for (const PixelRun& columns : of_tap) {
          sum.narrow(0, rows.position, rows.length)
              .narrow(1, columns.position, columns.length)
              .add_(pixels.narrow(0, rows.pixel, rows.length)
                        .narrow(1, columns.pixel, columns.length));
        }
      }
    }
    EXPECT_TRUE(torch::allclose(sum, patches(left).mm(patches(right).t()), 1e-12, 1e-12));
  }
}

}  // namespace
}  // namespace pumice
