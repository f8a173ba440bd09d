#include "pumice/model/weight_distribution.h"

#include "pumice/core/error.h"
#include "pumice/model/safetensors.h"

namespace pumice {

void write_distribution(const std::filesystem::path& path, const WeightDistribution& distribution) {
  TensorFile file;
  const Weights variance{distribution.mean.layout, distribution.variance};
  const auto add = [&](const std::string& prefix, const Weights& weights) {
    for (const auto& entry : weights.layout->entries()) {
      file.tensors.emplace_back(
          prefix + entry.name,
          weights.flat.narrow(0, entry.offset, entry.count).view(entry.shape).contiguous());
    }
  };
  add("mean.", distribution.mean);
  if (!distribution.deterministic()) add("variance.", variance);
  file.metadata = {{"pumice", "weight distribution"},
                   {"private", "true: holds the weights without noise, must not be released"}};
  write_safetensors(path, file, Readers::owner);
}

WeightDistribution read_distribution(const std::filesystem::path& path,
                                     std::shared_ptr<const WeightLayout> layout) {
  const TensorFile file = read_safetensors(path);
  std::vector<NamedTensor> means, variances;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with("mean.")) {
      means.emplace_back(name.substr(5), tensor);
    } else if (name.starts_with("variance.")) {
      variances.emplace_back(name.substr(9), tensor);
    }
  }
  if (means.empty())
    fail(path.string(), ": holds no distribution of weights (no 'mean.…' tensors)");
  try {
    WeightDistribution distribution{.mean = gather_weights(layout, means), .variance = {}};
    if (variances.empty()) return distribution;
    at::Tensor flat = at::empty({layout->total()}, at::kDouble);
    for (const auto& entry : layout->entries()) {
      bool found = false;
      for (const auto& [name, tensor] : variances) {
        if (name != entry.name) continue;
        if (tensor.sizes() != at::IntArrayRef(entry.shape)) {
          fail("'variance.", name, "' has shape ", tensor.sizes());
        }
        flat.narrow(0, entry.offset, entry.count).copy_(tensor.reshape({-1}));
        found = true;
      }
      if (!found) fail("'variance.", entry.name, "' is missing");
    }
    if (!flat.isfinite().all().item<bool>() || flat.min().item<double>() < 0) {
      fail("variances must be finite and >= 0");
    }
    distribution.variance = flat;
    return distribution;
  } catch (const Error& error) {
    fail(path.string(), ": ", error.what());
  }
}

}  // namespace pumice
