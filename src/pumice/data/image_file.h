// Reading, writing and resizing pictures.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace pumice {

// A picture of more pixels is refused before memory is taken for it: its header may lie.
constexpr std::int64_t largest_picture = 100'000'000;
void check_picture_size(const std::string& name, std::int64_t height, std::int64_t width);

// PNG or JPEG, recognised by content: uint8 C×H×W with C = 1 or 3 as asked. Grey is repeated,
// colour is weighted .299, .587, .114; transparency is laid on black; 16 bits are cut to 8. EXIF
// orientation is ignored, CMYK refused. Throws Error naming the file if it is damaged, truncated or
// too large.
at::Tensor read_image(const std::filesystem::path& path, std::int64_t channels);

std::string encode_png(const at::Tensor& image);                             // uint8 C×H×W
void write_png(const std::filesystem::path& path, const at::Tensor& image);  // the same, atomically

// uint8 or float32 N×C×H×W to N×C×size×size: scaled so that the shorter side fits, by a triangle
// filter that widens with the reduction (no aliasing), then cut to the centre square. Already that
// size: same. Sides in a ratio above 100 are refused.
at::Tensor resize_images(const at::Tensor& images, std::int64_t size);

// Between 1 and 3 channels, as in read_image.
at::Tensor convert_channels(const at::Tensor& images, std::int64_t channels);

}  // namespace pumice
