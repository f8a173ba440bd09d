#include "pumice/data/image_file.h"

#include <png.h>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/data/jpeg_decoder.h"

namespace pumice {
namespace {

constexpr std::uintmax_t largest_file = 1'000'000'000;

bool is_png(const std::string& bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1a\n");
}

// libpng's control structure; png_image_free may be called at any time, and twice.
struct PngImage {
  png_image image{};

  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

at::Tensor on_black(const at::Tensor& pixels) {  // H×W×4 to H×W×3
  const at::Tensor colour = pixels.slice(2, 0, 3).to(at::kInt);
  const at::Tensor alpha = pixels.slice(2, 3, 4).to(at::kInt);
  return at::div(colour * alpha + 127, 255, "floor").to(at::kByte);
}

at::Tensor decode_png(const std::string& bytes, const std::string& name) {
  PngImage png;
  png_image& image = png.image;
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) {
    fail(name, ": damaged PNG, ", image.message);
  }
  check_picture_size(name, image.height, image.width);
  // Colour even for grey files: libpng's own grey is weighted in linear light.
  const bool transparent = image.format & PNG_FORMAT_FLAG_ALPHA;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = transparent ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  at::Tensor pixels = at::empty({image.height, image.width, transparent ? 4 : 3}, at::kByte);
  if (!png_image_finish_read(&image, nullptr, pixels.data_ptr(), 0, nullptr)) {
    fail(name, ": damaged PNG, ", image.message);
  }
  if (transparent) pixels = on_black(pixels);
  return pixels.permute({2, 0, 1}).contiguous();
}

}  // namespace

void check_picture_size(const std::string& name, std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1 || height > largest_picture / width) {
    fail(name, ": ", width, "×", height, " pixels, must be at least one and at most ",
         largest_picture);
  }
}

at::Tensor read_image(const std::filesystem::path& path, std::int64_t channels) {
  const std::string name = path.string();
  std::error_code reason;
  const std::uintmax_t size = std::filesystem::file_size(path, reason);
  if (!reason && size > largest_file)
    fail(name, ": ", size, " bytes, must be at most ", largest_file);
  const std::string bytes = read_file(path);
  if (is_png(bytes)) return convert_channels(decode_png(bytes, name).unsqueeze(0), channels)[0];
  if (is_jpeg(bytes)) return convert_channels(decode_jpeg(bytes, name).unsqueeze(0), channels)[0];
  fail(name, ": neither PNG nor JPEG");
}

std::string encode_png(const at::Tensor& image) {
  if (image.dim() != 3 || image.scalar_type() != at::kByte || image.numel() == 0 ||
      (image.size(0) != 1 && image.size(0) != 3)) {
    fail("picture: must be uint8 C×H×W with one or three channels, not ", image.sizes());
  }
  const at::Tensor pixels = image.permute({1, 2, 0}).contiguous();
  PngImage png;
  png.image.height = static_cast<png_uint_32>(image.size(1));
  png.image.width = static_cast<png_uint_32>(image.size(2));
  png.image.format = image.size(0) == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(png.image), '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&png.image, bytes.data(), &size, 0, pixels.data_ptr(), 0,
                                 nullptr)) {
    fail("picture: cannot be written as PNG, ", png.image.message);
  }
  bytes.resize(size);
  return bytes;
}

void write_png(const std::filesystem::path& path, const at::Tensor& image) {
  write_file_atomically(path, encode_png(image));
}

}  // namespace pumice
