#include "pumice/data/dataset.h"

#include <unordered_set>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"

namespace pumice {

void check(const Dataset& dataset) {
  const std::int64_t size = dataset.size();
  const at::Tensor& images = dataset.images;
  if (!images.defined() || images.dim() != 4) fail("images: must have four dimensions, N×C×H×W");
  if (images.scalar_type() != at::kByte && images.scalar_type() != at::kFloat) {
    fail("images: type ", images.scalar_type(), ", must be uint8 or float32");
  }
  if (images.size(0) != size) fail("images: ", images.size(0), " of them, but ", size, " ids");
  if (!dataset.labels.defined() || dataset.labels.scalar_type() != at::kLong ||
      dataset.labels.dim() != 1 || dataset.labels.size(0) != size) {
    fail("labels: must be one int64 for each of the ", size, " images");
  }
  if (dataset.classes.names.size() != dataset.classes.original_labels.size()) {
    fail("classes: ", dataset.classes.names.size(), " names, but ",
         dataset.classes.original_labels.size(), " original labels");
  }
  std::unordered_set<std::string> seen;
  const auto labels = dataset.labels.accessor<std::int64_t, 1>();
  for (std::int64_t i = 0; i < size; ++i) {
    const std::string& id = dataset.ids[static_cast<std::size_t>(i)];
    if (labels[i] < 0 || labels[i] >= dataset.classes.size()) {
      fail(id, ": label ", labels[i], ", must be in 0 … ", dataset.classes.size() - 1);
    }
    if (!seen.insert(id).second) fail(id, ": this id occurs twice, ids must be unique");
  }
}

std::string digest(const Dataset& dataset) {
  Digest digest;
  digest.add_text("pumice dataset 1");
  digest.add_text(dataset.images.scalar_type() == at::kByte ? "uint8" : "float32");
  for (const std::int64_t extent : dataset.images.sizes()) {
    digest.add_number(static_cast<std::uint64_t>(extent));
  }
  const at::Tensor images = dataset.images.contiguous();
  digest.add_bytes(images.data_ptr(), images.nbytes());
  const at::Tensor labels = dataset.labels.contiguous();
  digest.add_bytes(labels.data_ptr(), labels.nbytes());
  for (const std::string& id : dataset.ids) digest.add_text(id);
  for (std::size_t k = 0; k < dataset.classes.names.size(); ++k) {
    digest.add_text(dataset.classes.names[k]);
    digest.add_number(static_cast<std::uint64_t>(dataset.classes.original_labels[k]));
  }
  return digest.label();
}

Dataset subset(const Dataset& dataset, const std::vector<std::int64_t>& positions) {
  const at::Tensor index = at::tensor(positions, at::kLong);
  Dataset chosen{.images = dataset.images.index_select(0, index),
                 .labels = dataset.labels.index_select(0, index),
                 .ids = {},
                 .classes = dataset.classes};
  chosen.ids.reserve(positions.size());
  for (const std::int64_t position : positions) {
    chosen.ids.push_back(dataset.ids.at(static_cast<std::size_t>(position)));
  }
  return chosen;
}

std::vector<std::vector<std::int64_t>> positions_by_class(const std::vector<std::int64_t>& labels,
                                                          std::int64_t class_count) {
  std::vector<std::vector<std::int64_t>> positions(static_cast<std::size_t>(class_count));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    positions.at(static_cast<std::size_t>(labels[i])).push_back(static_cast<std::int64_t>(i));
  }
  return positions;
}

}  // namespace pumice
