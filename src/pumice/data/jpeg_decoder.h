// JPEG from memory, by libjpeg. Baseline and progressive, grey or colour; CMYK is refused.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace pumice {

bool is_jpeg(const std::string& bytes);  // by the first three bytes

// uint8 C×H×W, C = 1 for a grey picture and 3 for colour. `name` is what errors call the file.
// Throws Error for a damaged or truncated file (libjpeg itself would fill the rest with grey), and
// for one larger than `largest_picture`.
at::Tensor decode_jpeg(const std::string& bytes, const std::string& name);

}  // namespace pumice
