#include "pumice/linearization/channel_layout.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace pumice {
namespace {

// Sizes below, at and above a block, one channel, one position.
const std::vector<std::vector<std::int64_t>> shapes{{3, 5, 4, 4},    {2, 16, 4, 4}, {1, 33, 5, 7},
                                                    {2, 1, 6, 6},    {4, 19, 1, 1}, {2, 17, 9},
                                                    {2, 18, 3, 2, 3}};

at::Tensor expected_rows(const at::Tensor& image) {
  return image.movedim(1, -1).reshape({image.size(0), -1});
}

// The same values in each order of memory there is.
std::vector<at::Tensor> in_all_orders(const at::Tensor& image) {
  std::vector<at::Tensor> all{image, image.movedim(1, -1).contiguous().movedim(-1, 1)};
  all.push_back(at::cat({image, image}, 1).narrow(1, 0, image.size(1)));  // with gaps
  return all;
}

TEST(ChannelLayout, ChannelsGoLastFromEveryOrderOfMemory) {
  torch::manual_seed(1);
  for (const auto& shape : shapes) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor image = torch::randn(shape, type);
      for (const at::Tensor& stored : in_all_orders(image)) {
        EXPECT_TRUE(torch::equal(channels_last_rows(stored), expected_rows(image))) << shape;
      }
    }
  }
}

TEST(ChannelLayout, RowsGoWhereTheStridesSay) {
  torch::manual_seed(2);
  const at::Tensor image = torch::randn({3, 20, 5, 5}, at::kDouble);
  at::Tensor target = at::full({3, 25, 4, 20}, 7, at::kDouble);  // example, position, seed, channel
  copy_channels_last(image, target.stride(0), target.stride(1),
                     target.data_ptr<double>() + 2 * target.stride(2));
  EXPECT_TRUE(torch::equal(target.select(2, 2).reshape({3, -1}), expected_rows(image)));
  for (const std::int64_t other : {0, 1, 3}) {
    EXPECT_TRUE(target.select(2, other).eq(7).all().item<bool>());
  }
}

TEST(ChannelLayout, SumsOverPositionsEqualThoseOfLibTorch) {
  torch::manual_seed(3);
  for (const auto& shape : shapes) {
    const at::Tensor gradient = torch::randn(shape, at::kDouble);
    const at::Tensor input = torch::randn(shape, at::kDouble);
    const at::Tensor mean = torch::randn({shape[1]}, at::kDouble);
    const at::Tensor scale = torch::randn({shape[1]}, at::kDouble);
    const at::Tensor plain = gradient.flatten(2).sum(2);
    const at::Tensor weighted =
        (gradient.flatten(2) * (input.flatten(2) - mean.view({1, -1, 1}))).sum(2) * scale;
    for (const at::Tensor& stored : in_all_orders(gradient)) {
      EXPECT_TRUE(at::allclose(channel_sums(stored), plain, 1e-12, 1e-12)) << shape;
      for (const at::Tensor& seen : in_all_orders(input)) {
        EXPECT_TRUE(at::allclose(channel_sums(stored, seen, mean, scale), weighted, 1e-12, 1e-12))
            << shape;
      }
    }
  }
}

}  // namespace
}  // namespace pumice
