#include "pumice/data/picture_source.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "pumice/core/error.h"
#include "pumice/core/interrupt.h"
#include "pumice/data/image_file.h"
#include "pumice/data/memory_source.h"

namespace pumice {
namespace {

bool has_picture_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char letter) { return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter; });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

template <typename Wanted>
std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& folder,
                                                  Wanted wanted) {
  std::vector<std::filesystem::path> entries;
  std::error_code reason;
  for (std::filesystem::directory_iterator entry(folder, reason), end; !reason && entry != end;
       entry.increment(reason)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(".") && wanted(*entry)) entries.push_back(entry->path());
  }
  if (reason) fail(folder.string(), ": cannot be listed, ", reason.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

PictureSource::PictureSource(ClassTable classes, PicturePart train, PicturePart test,
                             std::int64_t image_size, std::int64_t channels)
    : classes_(std::move(classes)),
      train_(std::move(train)),
      test_(std::move(test)),
      image_size_(image_size),
      channels_(channels) {
  check_ids("folder", train_.listing);
  check_ids("folder", test_.listing);
}

at::Tensor PictureSource::images(Part part, const std::vector<std::int64_t>& positions) const {
  const std::vector<std::filesystem::path>& files = part_of(part).files;
  const auto count = static_cast<std::int64_t>(positions.size());
  at::Tensor images = at::empty({count, channels_, image_size_, image_size_}, at::kByte);
  at::parallel_for(0, count, 16, [&](std::int64_t first, std::int64_t last) {
    const at::NoGradGuard no_gradient;
    for (std::int64_t i = first; i < last; ++i) {
      if (interrupted()) fail("interrupted while reading pictures");
      const auto position = static_cast<std::size_t>(positions[static_cast<std::size_t>(i)]);
      const std::filesystem::path& file = files.at(position);
      const at::Tensor picture = read_image(file, channels_);
      try {
        images[i].copy_(resize_images(picture.unsqueeze(0), image_size_)[0]);
      } catch (const Error& reason) {
        fail(file.string(), ": ", reason.what());
      }
    }
  });
  return images;
}

std::vector<std::filesystem::path> picture_files(const std::filesystem::path& folder) {
  return sorted_entries(folder, [](const std::filesystem::directory_entry& entry) {
    return has_picture_extension(entry.path()) && entry.is_regular_file();
  });
}

std::vector<std::filesystem::path> subfolders(const std::filesystem::path& folder) {
  return sorted_entries(
      folder, [](const std::filesystem::directory_entry& entry) { return entry.is_directory(); });
}

}  // namespace pumice
