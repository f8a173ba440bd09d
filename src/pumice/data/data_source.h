// Where images come from. A source first lists what it has; pixels are read only for what is
// selected, so a folder of a million files costs no more than the five hundred that are used.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/dataset.h"

namespace pumice {

enum class Part { train, test };
const char* part_name(Part part);  // "train", "test"

struct Listing {
  std::vector<std::string> ids;
  std::vector<std::int64_t> labels;  // positions in classes()

  std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
};

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual const ClassTable& classes() const = 0;
  // Empty when the source has no such part.
  virtual const Listing& listing(Part part) const = 0;
  // n×C×H×W in the order of `positions` (into the listing), uint8 or float32.
  virtual at::Tensor images(Part part, const std::vector<std::int64_t>& positions) const = 0;
};

// Sources with one fixed size keep it unless asked. Folders must know a size: 32 unless told.
struct SourceOptions {
  std::optional<std::int64_t> image_size = {};  // height = width, 4 … 1024
  std::optional<std::int64_t> channels = {};    // 1 (grey) or 3 (colour)
};

// SPEC is NAME (a data set of the catalogue, from its package or the cache) or kind:PATH.
//   fashion-mnist  mnist  cifar10  cifar100  tiny-imagenet
//   idx:DIR  cifar10:DIR  cifar100:DIR  folder:DIR  npz:FILE  tiny-imagenet:DIR  lacuna:DIR
// Throws Error for an unknown kind (with a suggestion), a missing path, or damaged files.
std::unique_ptr<DataSource> open_source(const std::string& spec, const SourceOptions& options = {});

}  // namespace pumice
