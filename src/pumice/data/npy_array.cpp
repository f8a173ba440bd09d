#include "pumice/data/npy_array.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"

namespace pumice {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

// Reads the dictionary that numpy writes: three keys, string, bool and tuple values, nothing
// nested.
class HeaderReader {
 public:
  HeaderReader(std::string_view header, const std::string& name) : rest_(header), name_(name) {}

  NpyArray read() {
    NpyArray array;
    std::optional<bool> fortran;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && array.type.empty()) {
        if (peek() != '\'' && peek() != '"')
          fail(name_, ": a structured type, must be a plain one");
        array.type = quoted();
      } else if (key == "fortran_order" && !fortran) {
        fortran = boolean();
      } else if (key == "shape" && !has_shape) {
        array.shape = tuple();
        has_shape = true;
      } else {
        fail(name_, ": damaged .npy header, key '", key, "' is unknown or repeated");
      }
      if (!accept(',') && peek() != '}') damaged();
    }
    skip_space();
    if (!rest_.empty() || array.type.empty() || !fortran || !has_shape) damaged();
    if (*fortran && array.shape.size() > 1) {
      fail(name_, ": in Fortran order, must be in C order; save numpy.ascontiguousarray(…) of it");
    }
    return array;
  }

 private:
  [[noreturn]] void damaged() const { fail(name_, ": damaged .npy header"); }
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  char peek() {
    skip_space();
    if (rest_.empty()) damaged();
    return rest_[0];
  }
  bool accept(char letter) {
    if (peek() != letter) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char letter) {
    if (!accept(letter)) damaged();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) damaged();
    const std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(std::strlen(word));
        return value;
      }
    }
    damaged();
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      std::int64_t value = 0;
      const auto [end, reason] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (reason != std::errc() || value < 0) damaged();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      values.push_back(value);
      if (!accept(',') && peek() != ')') damaged();
    }
    return values;
  }

  std::string_view rest_;
  const std::string& name_;
};

// Bytes of one value, from "<f4" or "<U12".
std::int64_t value_size(const std::string& type, const std::string& name) {
  if (type.size() >= 3 && type[0] == '>') {
    fail(name, ": type '", type, "' is big-endian, must be little-endian; use .astype on it");
  }
  std::int64_t size = -1;
  if (type.size() >= 3 && (type[0] == '<' || type[0] == '|')) {
    const auto [end, reason] = std::from_chars(type.data() + 2, type.data() + type.size(), size);
    if (reason != std::errc() || end != type.data() + type.size()) size = -1;
  }
  if (size < 0 || size > 1'000'000) fail(name, ": type '", type, "' is not a plain one");
  return type[1] == 'U' ? 4 * size : size;
}

void expect_one_dimension(const NpyArray& array, const std::string& name) {
  if (array.shape.size() != 1) {
    fail(name, ": ", array.shape.size(), " dimensions, must have one");
  }
}

template <typename Integer>
std::vector<std::int64_t> widen(const NpyArray& array, const std::string& name) {
  std::vector<std::int64_t> values;
  values.reserve(array.bytes.size() / sizeof(Integer));
  for (std::size_t start = 0; start < array.bytes.size(); start += sizeof(Integer)) {
    Integer value = 0;
    std::memcpy(&value, array.bytes.data() + start, sizeof(Integer));
    if constexpr (sizeof(Integer) == 8) {
      if (std::cmp_greater(value, std::numeric_limits<std::int64_t>::max())) {
        fail(name, ": ", value, " does not fit into 63 bits");
      }
    }
    values.push_back(static_cast<std::int64_t>(value));
  }
  return values;
}

void append_utf8(std::string& result, std::uint32_t code, const std::string& name) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail(name, ": not valid Unicode");
  if (code < 0x80) {
    result += static_cast<char>(code);
    return;
  }
  const int tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const unsigned lead = tails == 1 ? 0xC0 : tails == 2 ? 0xE0 : 0xF0;
  result += static_cast<char>(lead | code >> (6 * tails));
  for (int k = tails - 1; k >= 0; --k) result += static_cast<char>(0x80 | (code >> (6 * k) & 0x3F));
}

}  // namespace

std::int64_t NpyArray::count() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

NpyArray parse_npy(const std::string& content, const std::string& name) {
  if (content.size() < 10 || !content.starts_with("\x93NUMPY")) fail(name, ": not an .npy array");
  const auto byte = [&](std::size_t k) {
    return std::size_t{static_cast<unsigned char>(content[k])};
  };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) fail(name, ": .npy version ", version, ", must be 1, 2 or 3");
  const std::size_t start = version == 1 ? 10 : 12;
  if (content.size() < start) fail(name, ": truncated .npy header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > content.size() - start) fail(name, ": truncated .npy header");

  NpyArray array = HeaderReader(std::string_view(content).substr(start, length), name).read();
  std::uint64_t expected = static_cast<std::uint64_t>(value_size(array.type, name));
  const std::uint64_t present = content.size() - start - length;
  for (const std::int64_t extent : array.shape) {
    if (extent == 0) fail(name, ": empty, must hold at least one value");
    if (expected > (std::uint64_t{1} << 62) / static_cast<std::uint64_t>(extent)) {
      fail(name, ": truncated, its shape announces more than any file can hold");
    }
    expected *= static_cast<std::uint64_t>(extent);
  }
  if (present != expected) {
    fail(name, ": ", present, " bytes of values, but type and shape announce ", expected);
  }
  array.bytes = content.substr(start + length);
  return array;
}

std::vector<std::int64_t> npy_integers(const NpyArray& array, const std::string& name) {
  expect_one_dimension(array, name);
  const std::string type = array.type.substr(1);
  if (type == "i1") return widen<std::int8_t>(array, name);
  if (type == "u1") return widen<std::uint8_t>(array, name);
  if (type == "i2") return widen<std::int16_t>(array, name);
  if (type == "u2") return widen<std::uint16_t>(array, name);
  if (type == "i4") return widen<std::int32_t>(array, name);
  if (type == "u4") return widen<std::uint32_t>(array, name);
  if (type == "i8") return widen<std::int64_t>(array, name);
  if (type == "u8") return widen<std::uint64_t>(array, name);
  fail(name, ": type '", array.type, "', must be an integer type");
}

std::vector<std::string> npy_strings(const NpyArray& array, const std::string& name) {
  expect_one_dimension(array, name);
  const bool unicode = array.type[1] == 'U';
  if (!unicode && array.type[1] != 'S') {
    fail(name, ": type '", array.type, "', must be strings ('<U' or 'S')");
  }
  const auto count = static_cast<std::size_t>(array.shape[0]);
  const std::size_t size = array.bytes.size() / count;
  std::vector<std::string> strings;
  strings.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view field = std::string_view(array.bytes).substr(i * size, size);
    std::string value;
    if (unicode) {
      for (std::size_t k = 0; k + 4 <= field.size(); k += 4) {
        std::uint32_t code = 0;
        std::memcpy(&code, field.data() + k, 4);
        append_utf8(value, code, name);
      }
    } else {
      value = field;
    }
    // numpy pads with zeros.
    value.resize(value.find_last_not_of('\0') + 1);
    if (value.find('\0') != std::string::npos) fail(name, ": a string with a zero inside");
    strings.push_back(std::move(value));
  }
  return strings;
}

void write_npy(const std::filesystem::path& path, const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().contiguous();
  std::string type;
  switch (values.scalar_type()) {
    case at::kFloat:
      type = "<f4";
      break;
    case at::kDouble:
      type = "<f8";
      break;
    case at::kLong:
      type = "<i8";
      break;
    case at::kByte:
      type = "|u1";
      break;
    default:
      fail(path.string(), ": type ", values.scalar_type(), " cannot be written as .npy");
  }
  std::string shape;
  for (const std::int64_t extent : values.sizes()) shape += text(extent, ",");
  std::string header =
      text("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  // Magic, version and length take ten bytes; together with them the header fills lines of 64
  // bytes.
  constexpr std::size_t prefix = 10, line = 64;
  header.resize((header.size() + 1 + prefix + line - 1) / line * line - prefix - 1, ' ');
  header += '\n';
  AtomicFile file(path);
  std::ofstream out(file.temporary_path(), std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  out.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
  out << header;
  out.write(static_cast<const char*>(values.data_ptr()),
            static_cast<std::streamsize>(values.nbytes()));
  out.close();
  if (!out) fail(path.string(), ": cannot be written, is the disk full?");
  file.commit();
}

}  // namespace pumice
