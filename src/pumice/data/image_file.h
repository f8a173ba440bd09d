// Reading, writing and resizing pictures.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>

namespace pumice {

// PNG or JPEG, recognised by content: uint8 C×H×W with C = 1 or 3 as asked. Grey is repeated, colour is
// weighted .299, .587, .114; transparency is laid on black. EXIF orientation is ignored, CMYK refused.
at::Tensor read_image(const std::filesystem::path& path, std::int64_t channels);
void write_png(const std::filesystem::path& path, const at::Tensor& image);  // uint8 C×H×W, atomically

// uint8 or float32 N×C×H×W to N×C×size×size: scaled so that the shorter side fits, by a triangle filter
// that widens with the reduction (no aliasing), then cut to the centre square. Already that size: same.
at::Tensor resize_images(const at::Tensor& images, std::int64_t size);

// Between 1 and 3 channels, as in read_image.
at::Tensor convert_channels(const at::Tensor& images, std::int64_t channels);

}  // namespace pumice
