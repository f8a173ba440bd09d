#include "pumice/data/cifar_source.h"

#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/data/memory_source.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t pixel_bytes = 3 * 32 * 32;

struct Format {
  const char* inner_folder;
  const char* names_file;
  std::vector<const char*> train_files;
  const char* test_file;
  std::size_t label_bytes;  // the last of them is the label that is used
  std::int64_t class_count;
};

const Format& cifar10_format() {
  static const Format format{"cifar-10-batches-bin",
                             "batches.meta.txt",
                             {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                              "data_batch_4.bin", "data_batch_5.bin"},
                             "test_batch.bin",
                             1,
                             10};
  return format;
}

const Format& cifar100_format() {
  static const Format format{
      "cifar-100-binary", "fine_label_names.txt", {"train.bin"}, "test.bin", 2, 100};
  return format;
}

fs::path find_folder(const fs::path& folder, const Format& format) {
  if (!fs::is_directory(folder)) fail(folder.string(), ": no such folder");
  for (const fs::path& candidate : {folder, folder / format.inner_folder}) {
    if (fs::is_regular_file(candidate / format.test_file)) return candidate;
  }
  fail(folder.string(), ": neither ", format.test_file, " nor ", format.inner_folder, "/",
       format.test_file, " in it");
}

ClassTable read_class_names(const fs::path& path, std::int64_t class_count) {
  ClassTable table;
  std::set<std::string> seen;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (!seen.insert(line).second) fail(path.string(), ": the name '", line, "' occurs twice");
    table.original_labels.push_back(table.size());
    table.names.push_back(line);
  }
  if (table.size() != class_count) {
    fail(path.string(), ": ", table.size(), " class names, must be ", class_count);
  }
  return table;
}

// The files one after the other, into memory that was taken for all of them.
MemoryPart read_part(const fs::path& folder, const std::vector<const char*>& files, Part part,
                     const Format& format) {
  const std::size_t record = format.label_bytes + pixel_bytes;
  std::uintmax_t count = 0;
  for (const char* file : files) {
    const fs::path path = folder / file;
    if (!fs::is_regular_file(path)) fail(path.string(), ": no such file");
    const std::uintmax_t size = fs::file_size(path);
    if (size == 0 || size % record != 0) {
      fail(path.string(), ": ", size, " bytes, must be a whole number of records of ", record,
           " bytes; it is truncated or of another format");
    }
    count += size / record;
  }
  MemoryPart result;
  result.images = at::empty({static_cast<std::int64_t>(count), 3, 32, 32}, at::kByte);
  auto* pixels = result.images.data_ptr<unsigned char>();
  for (const char* file : files) {
    const std::string bytes = read_file(folder / file);
    for (std::size_t start = 0; start + record <= bytes.size(); start += record) {
      const auto label = static_cast<unsigned char>(bytes[start + format.label_bytes - 1]);
      if (label >= format.class_count) {
        fail((folder / file).string(), ": label ", int{label}, " in record ", start / record,
             ", must be in 0 … ", format.class_count - 1);
      }
      if (result.listing.size() >= static_cast<std::int64_t>(count)) {
        fail((folder / file).string(), ": changed while it was read");
      }
      std::memcpy(pixels, bytes.data() + start + format.label_bytes, pixel_bytes);
      pixels += pixel_bytes;
      result.listing.ids.push_back(numbered_id(part_name(part), result.listing.size()));
      result.listing.labels.push_back(label);
    }
  }
  return result;
}

std::unique_ptr<DataSource> open_cifar(const fs::path& given, const Format& format,
                                       const SourceOptions& options) {
  const fs::path folder = find_folder(given, format);
  return std::make_unique<MemorySource>(
      folder.string(), read_class_names(folder / format.names_file, format.class_count),
      read_part(folder, format.train_files, Part::train, format),
      read_part(folder, {format.test_file}, Part::test, format), options);
}

}  // namespace

std::unique_ptr<DataSource> open_cifar10(const fs::path& folder, const SourceOptions& options) {
  return open_cifar(folder, cifar10_format(), options);
}

std::unique_ptr<DataSource> open_cifar100(const fs::path& folder, const SourceOptions& options) {
  return open_cifar(folder, cifar100_format(), options);
}

}  // namespace pumice
