// Small data that tests make: squares of one colour, idx and CIFAR files, JPEG.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
// libjpeg's header needs <cstdio> first.
#include <jpeglib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/data/image_file.h"

namespace pumice::testing {

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// What the Error says, or a sentence that no test expects.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error was thrown";
}

inline void expect_contains(const std::string& text, const std::string& wanted) {
  EXPECT_NE(text.find(wanted), std::string::npos) << "'" << wanted << "' is not in: " << text;
}

inline at::Tensor coloured_square(int red, int green, int blue, std::int64_t size = 8) {
  at::Tensor image = at::empty({3, size, size}, at::kByte);
  image[0].fill_(red);
  image[1].fill_(green);
  image[2].fill_(blue);
  return image;
}

inline void write_square(const std::filesystem::path& path, int red, int green, int blue,
                         std::int64_t size = 8) {
  std::filesystem::create_directories(path.parent_path());
  write_png(path, coloured_square(red, green, blue, size));
}

// uint8 C×H×W as JPEG; four channels give a CMYK file.
inline void write_jpeg(const std::filesystem::path& path, const at::Tensor& image) {
  std::filesystem::create_directories(path.parent_path());
  const at::Tensor pixels = image.permute({1, 2, 0}).contiguous();
  jpeg_compress_struct state{};
  jpeg_error_mgr manager{};
  state.err = jpeg_std_error(&manager);
  jpeg_create_compress(&state);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  jpeg_stdio_dest(&state, file);
  state.image_height = static_cast<JDIMENSION>(image.size(1));
  state.image_width = static_cast<JDIMENSION>(image.size(2));
  state.input_components = static_cast<int>(image.size(0));
  state.in_color_space = image.size(0) == 1   ? JCS_GRAYSCALE
                         : image.size(0) == 3 ? JCS_RGB
                                              : JCS_CMYK;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 95, TRUE);
  jpeg_start_compress(&state, TRUE);
  auto* row = pixels.data_ptr<unsigned char>();
  const auto row_size = static_cast<std::size_t>(image.size(2) * image.size(0));
  while (state.next_scanline < state.image_height) {
    JSAMPROW next = row + row_size * state.next_scanline;
    jpeg_write_scanlines(&state, &next, 1);
  }
  jpeg_finish_compress(&state);
  jpeg_destroy_compress(&state);
  std::fclose(file);
}

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

// 2×2 images whose pixels are all the position of the image.
inline std::string idx_images(std::uint32_t count) {
  std::string bytes =
      std::string("\0\0\x08\x03", 4) + big_endian(count) + big_endian(2) + big_endian(2);
  for (std::uint32_t i = 0; i < count; ++i) bytes += std::string(4, static_cast<char>(i));
  return bytes;
}

inline std::string idx_labels(const std::vector<int>& labels) {
  std::string bytes =
      std::string("\0\0\x08\x01", 4) + big_endian(static_cast<std::uint32_t>(labels.size()));
  for (const int label : labels) bytes += static_cast<char>(label);
  return bytes;
}

inline void write_idx_folder(const std::filesystem::path& folder) {
  write_bytes(folder / "train-images-idx3-ubyte", idx_images(5));
  write_bytes(folder / "train-labels-idx1-ubyte", idx_labels({3, 1, 3, 1, 0}));
  write_bytes(folder / "t10k-images-idx3-ubyte", idx_images(2));
  write_bytes(folder / "t10k-labels-idx1-ubyte", idx_labels({1, 0}));
}

// Records whose red, green and blue planes are constant: (base, base+1, base+2).
inline std::string cifar_record(const std::string& label, int base) {
  return label + std::string(1024, static_cast<char>(base)) +
         std::string(1024, static_cast<char>(base + 1)) +
         std::string(1024, static_cast<char>(base + 2));
}

inline void write_cifar10_folder(const std::filesystem::path& folder) {
  for (int batch = 1; batch <= 5; ++batch) {
    std::string bytes;
    for (int i = 0; i < 2; ++i) {
      bytes +=
          cifar_record(std::string(1, static_cast<char>(2 * batch - 2 + i)), 20 * batch + 5 * i);
    }
    write_bytes(folder / ("data_batch_" + std::to_string(batch) + ".bin"), bytes);
  }
  std::string test;
  for (int i = 0; i < 10; ++i) test += cifar_record(std::string(1, static_cast<char>(i)), 7 * i);
  write_bytes(folder / "test_batch.bin", test);
  write_bytes(folder / "batches.meta.txt",
              "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
}

// Sets an environment variable for the life of this object.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* previous = std::getenv(name_.c_str())) {
      previous_ = previous;
      had_one_ = true;
    }
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~EnvironmentVariable() {
    if (had_one_) {
      ::setenv(name_.c_str(), previous_.c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  std::string name_;
  std::string previous_;
  bool had_one_ = false;
};

}  // namespace pumice::testing
