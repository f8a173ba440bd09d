#include "pumice/model/weights.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"

namespace pumice {

void WeightLayout::add(std::string name, std::vector<std::int64_t> shape) {
  assert(!find(name));
  const std::int64_t count = c10::multiply_integers(shape);
  entries_.push_back({std::move(name), std::move(shape), total_, count});
  total_ += count;
}

std::optional<std::size_t> WeightLayout::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  if (found == entries_.end()) return {};
  return static_cast<std::size_t>(found - entries_.begin());
}

std::vector<at::Tensor> Weights::tensors() const {
  std::vector<std::int64_t> counts;
  for (const auto& entry : layout->entries()) counts.push_back(entry.count);
  std::vector<at::Tensor> parts = flat.split_with_sizes(counts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = parts[i].view(layout->entries()[i].shape);
  }
  return parts;
}

at::Tensor Weights::tensor(const std::string& name) const {
  const auto position = layout->find(name);
  if (!position) fail("weights: there is no parameter '", name, "'");
  const auto& entry = layout->entries()[*position];
  return flat.narrow(0, entry.offset, entry.count).view(entry.shape);
}

Weights gather_weights(std::shared_ptr<const WeightLayout> layout,
                       const std::vector<NamedTensor>& tensors) {
  std::unordered_map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  std::vector<at::Tensor> parts;
  for (const auto& entry : layout->entries()) {
    const auto found = by_name.find(entry.name);
    if (found == by_name.end()) fail("weights: parameter '", entry.name, "' is missing");
    if (found->second.sizes() != at::IntArrayRef(entry.shape)) {
      fail("weights: parameter '", entry.name, "' has shape ", found->second.sizes(),
           ", must have ", at::IntArrayRef(entry.shape));
    }
    if (found->second.scalar_type() != at::kFloat) {
      fail("weights: parameter '", entry.name, "' has type ", found->second.scalar_type(),
           ", must be float32");
    }
    parts.push_back(found->second.detach().reshape({-1}));
  }
  return {std::move(layout), at::cat(parts)};
}

std::string digest(const Weights& weights) {
  Digest digest;
  digest.add_text("pumice weights 1");
  for (const auto& entry : weights.layout->entries()) {
    digest.add_text(entry.name);
    for (const std::int64_t extent : entry.shape)
      digest.add_number(static_cast<std::uint64_t>(extent));
  }
  const at::Tensor values = weights.flat.detach().contiguous();
  digest.add_text(c10::toString(values.scalar_type()));
  digest.add_bytes(values.data_ptr(), values.nbytes());
  return digest.label();
}

}  // namespace pumice
