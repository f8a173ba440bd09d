#include "pumice/data/npz_source.h"

#include <zip.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pumice/core/error.h"
#include "pumice/data/memory_source.h"
#include "pumice/data/npy_array.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_array = std::uint64_t{1} << 36;  // 64 GiB
constexpr std::uint64_t largest_compression = 1032;              // of deflate

class ZipFile {
 public:
  explicit ZipFile(const fs::path& path) : path_(path) {
    if (!fs::is_regular_file(path)) fail(path.string(), ": no such file");
    file_size_ = fs::file_size(path);
    int code = 0;
    archive_ = zip_open(path.c_str(), ZIP_RDONLY, &code);
    if (!archive_) {
      zip_error_t reason;
      zip_error_init_with_code(&reason, code);
      const std::string message = zip_error_strerror(&reason);
      zip_error_fini(&reason);
      fail(path.string(), ": not an .npz file, ", message);
    }
  }
  ~ZipFile() { zip_discard(archive_); }
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  std::string name_of(const std::string& array) const { return path_.string() + ": " + array; }

  std::optional<NpyArray> find(const std::string& array) const {
    const zip_int64_t index = zip_name_locate(archive_, (array + ".npy").c_str(), 0);
    if (index < 0) return {};
    return parse_npy(content(static_cast<zip_uint64_t>(index), array), name_of(array));
  }

  NpyArray get(const std::string& array) const {
    if (auto found = find(array)) return std::move(*found);
    std::string present;
    for (zip_int64_t k = 0; k < zip_get_num_entries(archive_, 0) && k < 20; ++k) {
      const char* name = zip_get_name(archive_, static_cast<zip_uint64_t>(k), 0);
      present += text(k ? ", " : "", name ? name : "?");
    }
    fail(path_.string(), ": no array '", array, "' in it (it has ",
         present.empty() ? "nothing" : present, ")");
  }

 private:
  std::string content(zip_uint64_t index, const std::string& array) const {
    zip_stat_t status;
    zip_stat_init(&status);
    if (zip_stat_index(archive_, index, 0, &status) != 0 || !(status.valid & ZIP_STAT_SIZE)) {
      fail(name_of(array), ": damaged, its size is not known");
    }
    if (status.size > largest_array || status.size / largest_compression > file_size_) {
      fail(name_of(array), ": damaged, ", status.size, " bytes announced in a file of ",
           file_size_);
    }
    zip_file_t* file = zip_fopen_index(archive_, index, 0);
    if (!file) fail(name_of(array), ": cannot be read, ", zip_strerror(archive_));
    std::string bytes(status.size, '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
      const zip_int64_t got = zip_fread(file, bytes.data() + done, bytes.size() - done);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    char extra = 0;
    // Reading on to the end makes libzip compare the checksum.
    const bool ended = done == bytes.size() && zip_fread(file, &extra, 1) == 0;
    const std::string reason = zip_file_strerror(file);
    zip_fclose(file);
    if (!ended) fail(name_of(array), ": damaged, ", reason);
    return bytes;
  }

  fs::path path_;
  std::uintmax_t file_size_ = 0;
  zip_t* archive_ = nullptr;
};

// N×C×H×W.
at::Tensor images_of(const NpyArray& array, const std::string& name) {
  const bool bytes = array.type == "|u1" || array.type == "<u1";
  if (!bytes && array.type != "<f4") {
    fail(name, ": type '", array.type, "', must be uint8 or float32; use .astype on it");
  }
  const std::size_t dimensions = array.shape.size();
  if (dimensions != 4 && !(bytes && dimensions == 3)) {
    fail(name, ": ", dimensions, " dimensions, must be ",
         bytes ? "N×H×W×C or N×H×W for uint8" : "N×C×H×W for float32");
  }
  at::Tensor images = at::empty(array.shape, bytes ? at::kByte : at::kFloat);
  std::memcpy(images.data_ptr(), array.bytes.data(), array.bytes.size());
  if (dimensions == 3) images = images.unsqueeze(3);
  if (bytes) images = images.permute({0, 3, 1, 2}).contiguous();
  if (bytes && images.size(1) != 1 && images.size(1) != 3) {
    fail(name, ": ", images.size(1), " channels, must be 1 or 3 (uint8 images are N×H×W×C)");
  }
  if (!bytes && !at::isfinite(images).all().item<bool>()) {
    fail(name, ": not all values are finite");
  }
  return images;
}

ClassTable class_table(const ZipFile& file, const std::vector<std::int64_t>& labels) {
  const std::set<std::int64_t> distinct(labels.begin(), labels.end());
  if (*distinct.begin() < 0) {
    fail(file.name_of("labels"), ": ", *distinct.begin(), ", labels must be >= 0");
  }
  std::vector<std::string> names;
  const auto array = file.find("class_names");
  if (array) names = npy_strings(*array, file.name_of("class_names"));
  ClassTable table;
  std::set<std::string> seen;
  for (const std::int64_t label : distinct) {
    if (array && label >= static_cast<std::int64_t>(names.size())) {
      fail(file.name_of("class_names"), ": ", names.size(), " names, but label ", label, " occurs");
    }
    const std::string name = array ? names[static_cast<std::size_t>(label)] : std::to_string(label);
    if (name.empty() || !seen.insert(name).second) {
      fail(file.name_of("class_names"), ": the name '", name, "' is ",
           name.empty() ? "empty" : "repeated", ", names must differ");
    }
    table.names.push_back(name);
    table.original_labels.push_back(label);
  }
  return table;
}

}  // namespace

std::unique_ptr<DataSource> open_npz(const fs::path& path, const SourceOptions& options) {
  const ZipFile file(path);
  MemoryPart train;
  train.images = images_of(file.get("images"), file.name_of("images"));
  const std::vector<std::int64_t> labels = npy_integers(file.get("labels"), file.name_of("labels"));
  const std::int64_t count = train.images.size(0);
  if (static_cast<std::int64_t>(labels.size()) != count) {
    fail(file.name_of("labels"), ": ", labels.size(), " of them, but ", count, " images");
  }
  const ClassTable table = class_table(file, labels);
  for (const std::int64_t label : labels) {
    const auto& known = table.original_labels;
    train.listing.labels.push_back(std::lower_bound(known.begin(), known.end(), label) -
                                   known.begin());
  }
  if (const auto ids = file.find("ids")) {
    train.listing.ids = npy_strings(*ids, file.name_of("ids"));
    if (train.listing.size() != count) {
      fail(file.name_of("ids"), ": ", train.listing.size(), " of them, but ", count, " images");
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) train.listing.ids.push_back(numbered_id("npz", i));
  }
  return std::make_unique<MemorySource>(file.name_of("ids"), table, std::move(train), MemoryPart{},
                                        options);
}

}  // namespace pumice
