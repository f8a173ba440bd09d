// A source whose images are PNG or JPEG files: folders, Tiny ImageNet and Lacuna end up here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pumice/data/data_source.h"

namespace pumice {

struct PicturePart {
  Listing listing;
  std::vector<std::filesystem::path> files;  // one for each id
};

// Reads a file only when its image is asked for, on all threads; memory is that of the result.
class PictureSource final : public DataSource {
 public:
  PictureSource(ClassTable classes, PicturePart train, PicturePart test, std::int64_t image_size,
                std::int64_t channels);

  const ClassTable& classes() const override { return classes_; }
  const Listing& listing(Part part) const override { return part_of(part).listing; }
  at::Tensor images(Part part, const std::vector<std::int64_t>& positions) const override;

 private:
  const PicturePart& part_of(Part part) const { return part == Part::train ? train_ : test_; }

  ClassTable classes_;
  PicturePart train_;
  PicturePart test_;
  std::int64_t image_size_;
  std::int64_t channels_;
};

// PNG and JPEG files in a folder, by extension and sorted by name; hidden ones are skipped, links
// followed. Subfolders likewise. Both throw Error if `folder` cannot be read.
std::vector<std::filesystem::path> picture_files(const std::filesystem::path& folder);
std::vector<std::filesystem::path> subfolders(const std::filesystem::path& folder);

}  // namespace pumice
