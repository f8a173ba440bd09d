#include "pumice/data/memory_source.h"

#include <unordered_set>
#include <utility>

#include "pumice/core/error.h"
#include "pumice/data/image_file.h"

namespace pumice {

MemorySource::MemorySource(std::string name, ClassTable classes, MemoryPart train, MemoryPart test,
                           SourceOptions options)
    : classes_(std::move(classes)),
      train_(std::move(train)),
      test_(std::move(test)),
      options_(options) {
  check_ids(name, train_.listing);
  check_ids(name, test_.listing);
}

at::Tensor MemorySource::images(Part part, const std::vector<std::int64_t>& positions) const {
  const MemoryPart& chosen = part_of(part);
  if (!chosen.images.defined()) fail(part_name(part), ": this source has no such part");
  at::Tensor images = chosen.images.index_select(0, at::tensor(positions, at::kLong));
  if (options_.channels) images = convert_channels(images, *options_.channels);
  if (options_.image_size) images = resize_images(images, *options_.image_size);
  return images;
}

std::string numbered_id(const std::string& prefix, std::int64_t position) {
  const std::string digits = std::to_string(position);
  return prefix + "/" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

void check_ids(const std::string& name, const Listing& listing) {
  std::unordered_set<std::string> seen;
  for (const std::string& id : listing.ids) {
    if (id.empty()) fail(name, ": an id is empty, each must name its image");
    if (id.find_first_of("\n\r") != std::string::npos) {
      fail(name, ": the id '", id, "' has a line break, cohort files could not name it");
    }
    if (!seen.insert(id).second) fail(name, ": the id '", id, "' occurs twice, ids must be unique");
  }
}

}  // namespace pumice
