#include "pumice/model/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"

namespace pumice {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t largest_header = 100'000'000;  // the published limit

struct ElementType {
  const char* name;
  at::ScalarType type;
};
constexpr std::array<ElementType, 10> element_types{{{"F64", at::kDouble},
                                                     {"F32", at::kFloat},
                                                     {"F16", at::kHalf},
                                                     {"BF16", at::kBFloat16},
                                                     {"I64", at::kLong},
                                                     {"I32", at::kInt},
                                                     {"I16", at::kShort},
                                                     {"I8", at::kChar},
                                                     {"U8", at::kByte},
                                                     {"BOOL", at::kBool}}};

struct TensorRange {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

std::uint64_t little_endian(const char* bytes) {
  std::uint64_t value = 0;
  for (int i = length_bytes - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// JSON allows a name twice and libraries keep the last one; in a file of weights that is an attack
// or a mistake.
Json parse_header(const std::string& file, const std::string& header) {
  std::vector<std::set<std::string>> open_objects;
  std::optional<std::string> duplicate;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!open_objects.back().insert(key).second) duplicate = key;
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(header, watch);
  } catch (const Json::exception&) {
    fail(file, ": the header is not valid JSON");
  }
  if (duplicate) fail(file, ": the name '", *duplicate, "' occurs twice in the header");
  if (!json.is_object()) fail(file, ": the header must be a JSON object");
  return json;
}

std::uint64_t unsigned_number(const std::string& where, const Json& value, const char* what) {
  if (!value.is_number_unsigned()) fail(where, ": ", what, " must hold whole numbers >= 0");
  return value.get<std::uint64_t>();
}

TensorRange parse_tensor(const std::string& file, const std::string& name, const Json& entry,
                         std::uint64_t data_size) {
  const std::string where = text(file, ": tensor '", name, "'");
  if (!entry.is_object()) fail(where, ": its entry must be an object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) fail(where, ": '", key, "' is missing");
  }
  if (!entry["dtype"].is_string()) fail(where, ": dtype must be a text");
  const std::string type_name = entry["dtype"].get<std::string>();
  const auto type = std::find_if(element_types.begin(), element_types.end(),
                                 [&](const ElementType& known) { return type_name == known.name; });
  if (type == element_types.end()) fail(where, ": dtype '", type_name, "' is not supported");

  TensorRange range{name, type->type, {}, 0, 0};
  const Json& shape = entry["shape"];
  if (!shape.is_array()) fail(where, ": shape must be a list");
  std::uint64_t bytes = c10::elementSize(type->type);
  bool empty = false;  // a zero extent: no bytes, but the others must still be sane
  for (const Json& value : shape) {
    const std::uint64_t extent = unsigned_number(where, value, "shape");
    // Checked before multiplying: a product that wraps around would pass for a small tensor.
    if (extent != 0 && bytes > std::max<std::uint64_t>(data_size, 1 << 20) / extent) {
      fail(where, ": shape asks for more than the ", data_size, " bytes of data in the file");
    }
    empty = empty || extent == 0;
    bytes *= std::max<std::uint64_t>(extent, 1);
    range.shape.push_back(static_cast<std::int64_t>(extent));
  }
  if (empty) bytes = 0;
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) fail(where, ": data_offsets must be a pair");
  range.begin = unsigned_number(where, offsets[0], "data_offsets");
  range.end = unsigned_number(where, offsets[1], "data_offsets");
  if (range.begin > range.end || range.end > data_size) {
    fail(where, ": data_offsets ", range.begin, " … ", range.end, ", must lie in 0 … ", data_size,
         " (is the file truncated?)");
  }
  if (range.end - range.begin != bytes) {
    fail(where, ": ", range.end - range.begin, " bytes, but its shape and type need ", bytes);
  }
  return range;
}

Metadata parse_metadata(const std::string& file, const Json& entry) {
  if (!entry.is_object()) fail(file, ": __metadata__ must be an object");
  Metadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) fail(file, ": __metadata__ '", key, "' must be a text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

void check_coverage(const std::string& file, std::vector<TensorRange>& ranges,
                    std::uint64_t data_size) {
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const TensorRange& left, const TensorRange& right) {
                     return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
                   });
  std::uint64_t position = 0;
  for (const TensorRange& range : ranges) {
    if (range.begin < position)
      fail(file, ": tensor '", range.name, "' overlaps the one before it");
    if (range.begin > position) {
      fail(file, ": tensor '", range.name, "' leaves a gap of ", range.begin - position,
           " bytes before it");
    }
    position = range.end;
  }
  if (position != data_size) {
    fail(file, ": ", data_size - position, " trailing bytes after the last tensor");
  }
}

const char* type_name(const std::string& tensor, at::ScalarType type) {
  for (const ElementType& known : element_types) {
    if (known.type == type) return known.name;
  }
  fail("tensor '", tensor, "': type ", type, " cannot be written to a safetensors file");
}

}  // namespace

TensorFile read_safetensors(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string content = read_file(path);
  if (content.size() < length_bytes) {
    fail(file, ": ", content.size(), " bytes, too short for a safetensors file");
  }
  const std::uint64_t header_size = little_endian(content.data());
  if (header_size > largest_header || header_size > content.size() - length_bytes) {
    fail(file, ": the header claims ", header_size, " bytes, the file has ",
         content.size() - length_bytes, " after its length (truncated, or not a safetensors file)");
  }
  const Json header = parse_header(file, content.substr(length_bytes, header_size));
  const char* data = content.data() + length_bytes + header_size;
  const std::uint64_t data_size = content.size() - length_bytes - header_size;

  TensorFile result;
  std::vector<TensorRange> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      result.metadata = parse_metadata(file, entry);
    } else {
      ranges.push_back(parse_tensor(file, name, entry, data_size));
    }
  }
  check_coverage(file, ranges, data_size);
  for (const TensorRange& range : ranges) {
    at::Tensor tensor = at::empty(range.shape, range.type);
    if (range.end > range.begin) {
      std::memcpy(tensor.data_ptr(), data + range.begin, range.end - range.begin);
    }
    result.tensors.emplace_back(range.name, std::move(tensor));
  }
  return result;
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file, Readers readers) {
  Json header = Json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::uint64_t position = 0;
  for (const auto& [name, tensor] : file.tensors) {
    if (name == "__metadata__" || header.contains(name)) {
      fail(path.string(), ": tensor name '", name, "' is reserved or used twice");
    }
    header[name] = {{"dtype", type_name(name, tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {position, position + tensor.nbytes()}}};
    position += tensor.nbytes();
  }
  std::string header_text = header.dump();
  header_text.resize((header_text.size() + 7) / 8 * 8, ' ');

  AtomicFile target(path, readers);
  {
    std::ofstream out(target.temporary_path(), std::ios::binary);
    for (std::size_t i = 0; i < length_bytes; ++i) {
      out.put(static_cast<char>(static_cast<std::uint64_t>(header_text.size()) >> (8 * i)));
    }
    out << header_text;
    for (const auto& [name, tensor] : file.tensors) {
      const at::Tensor values = tensor.detach().contiguous();
      out.write(static_cast<const char*>(values.data_ptr()),
                static_cast<std::streamsize>(values.nbytes()));
    }
    out.close();
    if (!out) fail(path.string(), ": cannot be written, is the disk full?");
  }
  target.commit();
}

}  // namespace pumice
