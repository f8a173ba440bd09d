#include "pumice/data/image_folder_source.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/data/picture_source.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

// A plain decimal number without a leading zero, so that no two names mean the same label.
std::optional<std::int64_t> as_label(const std::string& name) {
  std::int64_t value = 0;
  const auto [end, reason] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (reason != std::errc() || end != name.data() + name.size() || value < 0) return {};
  if (std::to_string(value) != name) return {};
  return value;
}

ClassTable class_table(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& path : subfolders(folder)) names.push_back(path.filename().string());
  if (names.empty()) fail(folder.string(), ": no folders in it, must have one for each class");
  const bool numbers = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return as_label(name).has_value();
  });
  if (numbers) {
    std::sort(names.begin(), names.end(), [](const std::string& left, const std::string& right) {
      return *as_label(left) < *as_label(right);
    });
  }
  ClassTable table;
  for (const std::string& name : names) {
    table.original_labels.push_back(numbers ? *as_label(name) : table.size());
    table.names.push_back(name);
  }
  return table;
}

PicturePart list_part(const fs::path& folder, const std::string& prefix, const ClassTable& table) {
  PicturePart part;
  for (const fs::path& class_folder : subfolders(folder)) {
    const std::string name = class_folder.filename().string();
    const auto found = std::find(table.names.begin(), table.names.end(), name);
    if (found == table.names.end()) {
      fail(class_folder.string(), ": class '", name, "' is not among the training classes");
    }
    const std::vector<fs::path> files = picture_files(class_folder);
    if (files.empty()) fail(class_folder.string(), ": no pictures in it (png, jpg or jpeg)");
    for (const fs::path& file : files) {
      part.listing.ids.push_back(prefix + name + "/" + file.filename().string());
      part.listing.labels.push_back(found - table.names.begin());
      part.files.push_back(file);
    }
  }
  return part;
}

std::optional<std::string> test_folder(const fs::path& folder) {
  if (!fs::is_directory(folder / "train")) return {};
  for (const char* name : {"test", "val"}) {
    if (fs::is_directory(folder / name)) return name;
  }
  return {};
}

}  // namespace

std::unique_ptr<DataSource> open_image_folder(const fs::path& folder,
                                              const SourceOptions& options) {
  if (!fs::is_directory(folder)) fail(folder.string(), ": no such folder");
  const std::optional<std::string> test_name = test_folder(folder);
  const fs::path train_folder = test_name ? folder / "train" : folder;
  const ClassTable table = class_table(train_folder);
  PicturePart train = list_part(train_folder, test_name ? "train/" : "", table);
  PicturePart test;
  if (test_name) test = list_part(folder / *test_name, *test_name + "/", table);
  return std::make_unique<PictureSource>(table, std::move(train), std::move(test),
                                         options.image_size.value_or(32),
                                         options.channels.value_or(3));
}

std::unique_ptr<DataSource> open_lacuna(const fs::path& folder, const SourceOptions& options) {
  if (!fs::is_directory(folder)) fail(folder.string(), ": no such folder");
  if (!test_folder(folder)) {
    fail(folder.string(),
         ": no train and test folders in it, a Lacuna folder must have both; "
         "'pumice data make lacuna --from DIR --out DIR' makes one");
  }
  auto source = open_image_folder(folder, options);
  const ClassTable& table = source->classes();
  const auto tested = positions_by_class(source->listing(Part::test).labels, table.size());
  for (std::size_t k = 0; k < tested.size(); ++k) {
    if (tested[k].empty()) {
      fail(folder.string(), ": identity '", table.names[k],
           "' has no test pictures, must have at least one");
    }
  }
  return source;
}

}  // namespace pumice
