#include <ATen/ops/_upsample_bilinear2d_aa.h>

#include <algorithm>

#include "pumice/core/error.h"
#include "pumice/data/image_file.h"

namespace pumice {
namespace {

constexpr std::int64_t largest_ratio = 100;

// As many images at a time as fit into about 64 MB of float32, in and out.
std::int64_t images_at_a_time(const at::Tensor& images, std::int64_t scaled_pixels) {
  const std::int64_t pixels = std::max(images.size(2) * images.size(3), scaled_pixels);
  return std::max<std::int64_t>(1, 16'000'000 / std::max<std::int64_t>(1, images.size(1) * pixels));
}

at::Tensor scale_and_cut(const at::Tensor& images, std::int64_t height, std::int64_t width,
                         std::int64_t size) {
  const at::Tensor scaled = at::_upsample_bilinear2d_aa(images.to(at::kFloat).contiguous(),
                                                        {height, width}, /*align_corners=*/false);
  const at::Tensor square = scaled.slice(2, (height - size) / 2, (height - size) / 2 + size)
                                .slice(3, (width - size) / 2, (width - size) / 2 + size);
  if (images.scalar_type() != at::kByte) return square.contiguous();
  return square.round().clamp(0, 255).to(at::kByte).contiguous();
}

}  // namespace

at::Tensor resize_images(const at::Tensor& images, std::int64_t size) {
  if (images.dim() != 4) fail("images: must have four dimensions, N×C×H×W");
  if (size < 1) fail("image-size: ", size, ", must be >= 1");
  const std::int64_t height = images.size(2);
  const std::int64_t width = images.size(3);
  if (height == size && width == size) return images;
  const std::int64_t shorter = std::min(height, width);
  const std::int64_t longer = std::max(height, width);
  if (shorter < 1 || longer / shorter > largest_ratio) {
    fail("images: ", width, "×", height, " pixels, one side must be at most ", largest_ratio,
         " times the other");
  }
  const std::int64_t scaled_longer = (2 * longer * size + shorter) / (2 * shorter);  // rounded
  const std::int64_t scaled_height = height == shorter ? size : scaled_longer;
  const std::int64_t scaled_width = width == shorter ? size : scaled_longer;

  at::Tensor result = at::empty({images.size(0), images.size(1), size, size}, images.options());
  const std::int64_t step = images_at_a_time(images, scaled_height * scaled_width);
  for (std::int64_t first = 0; first < images.size(0); first += step) {
    const std::int64_t last = std::min(first + step, images.size(0));
    result.slice(0, first, last)
        .copy_(scale_and_cut(images.slice(0, first, last), scaled_height, scaled_width, size));
  }
  return result;
}

at::Tensor convert_channels(const at::Tensor& images, std::int64_t channels) {
  if (images.dim() != 4) fail("images: must have four dimensions, N×C×H×W");
  const std::int64_t present = images.size(1);
  if (present == channels) return images;
  if (present == 1 && channels == 3) return images.expand({-1, 3, -1, -1}).contiguous();
  if (present != 3 || channels != 1) {
    fail("channels: ", present, " cannot become ", channels, ", must be 1 or 3");
  }
  const at::Tensor red = images.slice(1, 0, 1);
  const at::Tensor green = images.slice(1, 1, 2);
  const at::Tensor blue = images.slice(1, 2, 3);
  if (images.scalar_type() != at::kByte) return red * 0.299 + green * 0.587 + blue * 0.114;
  // Whole numbers, so that a grey pixel keeps its value exactly.
  const at::Tensor weighted =
      red.to(at::kInt) * 299 + green.to(at::kInt) * 587 + blue.to(at::kInt) * 114 + 500;
  return at::div(weighted, 1000, "floor").to(at::kByte);
}

}  // namespace pumice
