#include "pumice/data/tiny_imagenet_source.h"

#include <map>
#include <sstream>
#include <string>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/data/picture_source.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

fs::path find_folder(const fs::path& folder) {
  if (!fs::is_directory(folder)) fail(folder.string(), ": no such folder");
  for (const fs::path& candidate : {folder, folder / "tiny-imagenet-200"}) {
    if (fs::is_directory(candidate / "train") && fs::is_directory(candidate / "val")) {
      return candidate;
    }
  }
  fail(folder.string(), ": no train and val folders in it, as Tiny ImageNet has them");
}

// A line is the file's name, its wnid and a box, separated by tabs.
std::map<std::string, std::string> read_annotations(const fs::path& path) {
  std::map<std::string, std::string> wnid_of;
  std::istringstream in(read_file(path));
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    std::string file;
    std::string wnid;
    if (!(words >> file)) continue;
    if (!(words >> wnid)) fail(path.string(), ":", number, ": no class behind '", file, "'");
    if (!wnid_of.emplace(file, wnid).second) {
      fail(path.string(), ":", number, ": '", file, "' is annotated twice");
    }
  }
  return wnid_of;
}

}  // namespace

std::unique_ptr<DataSource> open_tiny_imagenet(const fs::path& given,
                                               const SourceOptions& options) {
  const fs::path folder = find_folder(given);
  ClassTable table;
  PicturePart train;
  std::map<std::string, std::int64_t> position_of;
  for (const fs::path& class_folder : subfolders(folder / "train")) {
    const std::string wnid = class_folder.filename().string();
    const std::int64_t label = table.size();
    position_of.emplace(wnid, label);
    table.names.push_back(wnid);
    table.original_labels.push_back(label);
    const std::vector<fs::path> files = picture_files(class_folder / "images");
    if (files.empty()) fail((class_folder / "images").string(), ": no pictures in it");
    for (const fs::path& file : files) {
      train.listing.ids.push_back("train/" + wnid + "/images/" + file.filename().string());
      train.listing.labels.push_back(label);
      train.files.push_back(file);
    }
  }
  if (table.names.empty()) fail((folder / "train").string(), ": no classes in it");

  const fs::path annotations = folder / "val" / "val_annotations.txt";
  const std::map<std::string, std::string> wnid_of = read_annotations(annotations);
  PicturePart test;
  for (const fs::path& file : picture_files(folder / "val" / "images")) {
    const auto annotation = wnid_of.find(file.filename().string());
    if (annotation == wnid_of.end()) fail(file.string(), ": not named in ", annotations.string());
    const auto position = position_of.find(annotation->second);
    if (position == position_of.end()) {
      fail(annotations.string(), ": class '", annotation->second, "' of ", annotation->first,
           " is not among the training classes");
    }
    test.listing.ids.push_back("val/images/" + annotation->first);
    test.listing.labels.push_back(position->second);
    test.files.push_back(file);
  }
  if (test.listing.ids.size() != wnid_of.size()) {
    fail(annotations.string(), ": names ", wnid_of.size(), " pictures, but ",
         test.listing.ids.size(), " are there");
  }
  return std::make_unique<PictureSource>(table, std::move(train), std::move(test),
                                         options.image_size.value_or(64),
                                         options.channels.value_or(3));
}

}  // namespace pumice
