#include "pumice/data/idx_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "pumice/core/error.h"
#include "pumice/data/memory_source.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

// deflate cannot shrink by more than this, so a header that promises more bytes lies.
constexpr std::uintmax_t largest_compression = 1032;

class GzipFile {
 public:
  explicit GzipFile(fs::path path) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")) {
    if (!file_) fail(path_.string(), ": cannot be opened");
    gzbuffer(file_, 1 << 18);
  }
  ~GzipFile() { gzclose_r(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  void read(unsigned char* bytes, std::size_t size) {
    while (size > 0) {
      const auto wanted = static_cast<unsigned>(std::min<std::size_t>(size, 1 << 30));
      const int got = gzread(file_, bytes, wanted);
      if (got <= 0) refuse_damage("truncated");
      bytes += got;
      size -= static_cast<std::size_t>(got);
    }
  }

  // Also makes zlib compare the checksum at the end of a gzip file.
  void expect_end() {
    unsigned char extra = 0;
    const int got = gzread(file_, &extra, 1);
    if (got > 0) fail(path_.string(), ": trailing bytes behind the data its header announces");
    int code = Z_OK;
    gzerror(file_, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) refuse_damage("damaged");
  }

 private:
  [[noreturn]] void refuse_damage(const char* what) {
    int code = Z_OK;
    const char* message = gzerror(file_, &code);
    if (code != Z_OK && code != Z_STREAM_END) fail(path_.string(), ": ", what, ", ", message);
    fail(path_.string(), ": ", what, ", fewer bytes than its header announces");
  }

  fs::path path_;
  gzFile file_;
};

at::Tensor read_idx(const fs::path& path, std::size_t dimensions) {
  GzipFile file(path);
  std::array<unsigned char, 4> magic{};
  file.read(magic.data(), magic.size());
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] != dimensions) {
    fail(path.string(), ": not an idx file of bytes with ", dimensions,
         dimensions == 1 ? " dimension" : " dimensions", " (its first four bytes say otherwise)");
  }
  std::vector<std::int64_t> shape;
  std::uintmax_t size = 1;
  const std::uintmax_t limit = (fs::file_size(path) + 1024) * largest_compression;
  for (std::size_t k = 0; k < dimensions; ++k) {
    std::array<unsigned char, 4> bytes{};
    file.read(bytes.data(), bytes.size());
    const std::uint32_t extent = std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
                                 std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
    if (extent == 0) fail(path.string(), ": dimension ", k, " is 0, must be >= 1");
    if (size > limit / extent) {
      fail(path.string(), ": truncated, its header announces more than the file can hold");
    }
    size *= extent;
    shape.push_back(extent);
  }
  at::Tensor values = at::empty(shape, at::kByte);
  file.read(values.data_ptr<unsigned char>(), size);
  file.expect_end();
  return values;
}

// "train", "images", 3 → the first of the four spellings that is there.
std::optional<fs::path> find_idx(const fs::path& folder, const std::string& part,
                                 const std::string& what, int dimensions) {
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path =
          folder / text(part, "-", what, separator, "idx", dimensions, "-ubyte", ending);
      if (fs::is_regular_file(path)) return path;
    }
  }
  return {};
}

struct RawPart {
  at::Tensor images;  // N×H×W, undefined if the part is missing
  at::Tensor labels;  // N
  fs::path labels_path;
};

RawPart read_part(const fs::path& folder, const std::string& part, bool required) {
  const auto images = find_idx(folder, part, "images", 3);
  const auto labels = find_idx(folder, part, "labels", 1);
  if (!images && !labels && !required) return {};
  if (!images) fail(folder.string(), ": no ", part, "-images-idx3-ubyte[.gz] in it");
  if (!labels) fail(folder.string(), ": no ", part, "-labels-idx1-ubyte[.gz] in it");
  RawPart raw{read_idx(*images, 3), read_idx(*labels, 1), *labels};
  if (raw.images.size(0) != raw.labels.size(0)) {
    fail(labels->string(), ": ", raw.labels.size(0), " labels, but ", raw.images.size(0),
         " images in ", images->filename().string());
  }
  return raw;
}

void collect_labels(const RawPart& raw, std::set<std::int64_t>& labels) {
  if (!raw.labels.defined()) return;
  const auto* values = raw.labels.data_ptr<unsigned char>();
  labels.insert(values, values + raw.labels.numel());
}

ClassTable class_table(const std::set<std::int64_t>& labels) {
  ClassTable table;
  for (const std::int64_t label : labels) {
    table.names.push_back(std::to_string(label));
    table.original_labels.push_back(label);
  }
  return table;
}

ClassTable class_table(const std::vector<std::string>& names) {
  ClassTable table{.names = names, .original_labels = {}};
  for (std::size_t k = 0; k < names.size(); ++k) {
    table.original_labels.push_back(static_cast<std::int64_t>(k));
  }
  return table;
}

MemoryPart listed(const RawPart& raw, Part part, const ClassTable& table) {
  MemoryPart result;
  if (!raw.images.defined()) return result;
  result.images = raw.images.unsqueeze(1);
  const auto* values = raw.labels.data_ptr<unsigned char>();
  for (std::int64_t i = 0; i < raw.labels.numel(); ++i) {
    const auto& known = table.original_labels;
    const auto found = std::lower_bound(known.begin(), known.end(), std::int64_t{values[i]});
    if (found == known.end() || *found != values[i]) {
      fail(raw.labels_path.string(), ": label ", int{values[i]}, " at position ", i,
           ", must be in 0 … ", table.size() - 1);
    }
    result.listing.ids.push_back(numbered_id(part_name(part), i));
    result.listing.labels.push_back(found - known.begin());
  }
  return result;
}

}  // namespace

std::unique_ptr<DataSource> open_idx(const fs::path& folder,
                                     const std::vector<std::string>& class_names,
                                     const SourceOptions& options) {
  if (!fs::is_directory(folder)) fail(folder.string(), ": no such folder");
  const RawPart train = read_part(folder, "train", true);
  const RawPart test = read_part(folder, "t10k", false);
  if (test.images.defined() && (test.images.size(1) != train.images.size(1) ||
                                test.images.size(2) != train.images.size(2))) {
    fail(folder.string(), ": test images of another size than the training images");
  }
  std::set<std::int64_t> labels;
  collect_labels(train, labels);
  collect_labels(test, labels);
  const ClassTable table = class_names.empty() ? class_table(labels) : class_table(class_names);
  return std::make_unique<MemorySource>(folder.string(), table, listed(train, Part::train, table),
                                        listed(test, Part::test, table), options);
}

}  // namespace pumice
