#include "pumice/core/memory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>  // defines __GLIBC__ where there is one
#include <fstream>
#include <limits>
#include <optional>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr double kibi = 1024;
constexpr int largest_heap_block = 32 << 20;  // the most that glibc lets one choose

// "MemAvailable:   12345 kB"
std::optional<std::int64_t> system_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t kilobytes = 0;
  std::string unit;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value) return value;  // "max" is no number: no limit
  return std::nullopt;
}

std::optional<std::int64_t> group_available() {
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  return std::max<std::int64_t>(0, *limit - *used);
}

}  // namespace

void keep_freed_memory() {
#ifdef __GLIBC__
  // What layers need comes from the heap, where it can be reused; vectors of all weights and parts
  // of kernels would leave holes in it that nothing else fills.
  mallopt(M_MMAP_THRESHOLD, largest_heap_block);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

void release_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

std::int64_t available_memory() {
  const auto system = system_available();
  const auto group = group_available();
  if (!system && !group) fail("memory: cannot tell how much is free here, give --memory");
  return std::min(system.value_or(std::numeric_limits<std::int64_t>::max()),
                  group.value_or(std::numeric_limits<std::int64_t>::max()));
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= kibi && unit + 1 < units.size()) {
    bytes /= kibi;
    ++unit;
  }
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes,
                units[unit]);
  return out.data();
}

std::int64_t parse_bytes(const std::string& given) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(given, &used);
  } catch (const std::exception&) {
  }
  std::string unit;
  for (const char letter : given.substr(std::min(used, given.size()))) {
    if (letter != ' ') unit += static_cast<char>(std::toupper(letter));
  }
  const std::string letters = "KMGT";
  double factor = 1;
  bool known = unit.empty() || unit == "B";
  if (!unit.empty() && letters.find(unit[0]) != std::string::npos) {
    const std::string rest = unit.substr(1);
    known = rest.empty() || rest == "B" || rest == "IB";
    factor = std::pow(kibi, static_cast<double>(letters.find(unit[0]) + 1));
  }
  const double bytes = value * factor;
  if (used == 0 || !known || !(bytes >= 1) || bytes > 1e18) {
    fail("memory: '", given, "', must be a number of bytes such as 2G, 1.5 GiB or 800M");
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace pumice
