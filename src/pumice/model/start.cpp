#include "pumice/model/start.h"

#include "pumice/core/error.h"
#include "pumice/core/revision.h"

namespace pumice {

Start with_fresh_head(const Checkpoint& body, std::int64_t classes, std::uint64_t seed) {
  const auto network = std::dynamic_pointer_cast<Network>(body.model);
  if (!network) fail("head: fresh, but a TorchScript model keeps its head; give it one in Python");
  Architecture architecture = network->architecture();
  architecture.classes = classes;
  auto fresh = std::make_shared<Network>(architecture);
  fresh->set_buffers(network->buffers());
  Weights weights = fresh_weights(*fresh, seed);
  for (const auto& entry : fresh->layout().entries()) {
    if (entry.name.starts_with(fresh->head() + ".")) continue;
    weights.tensor(entry.name).copy_(body.weights.tensor(entry.name));
  }
  return {fresh, weights};
}

Start fresh_start(const std::string& architecture, double width, const Dataset& train,
                  std::uint64_t seed) {
  auto network = std::make_shared<Network>(Architecture{.name = architecture,
                                                        .width = width,
                                                        .input_channels = train.images.size(1),
                                                        .classes = train.classes.size(),
                                                        .image_size = train.images.size(2)});
  Weights weights = fresh_weights(*network, seed);
  return {network, weights};
}

Metadata training_metadata(const DataRequest& request, const Dataset& train,
                           const Normalization& normalization, std::size_t excluded, bool replace) {
  Metadata metadata{{"created_by", text("pumice ", version())},
                    {"revision", revision()},
                    {"data_digest", digest(train)}};
  store(metadata, request);
  store(metadata, train.classes);
  if (!normalization.empty()) store(metadata, normalization);
  if (excluded > 0) {
    metadata["excluded"] = text(excluded, " of ", train.size(), " training examples",
                                replace ? ", replaced by repeats" : "");
  }
  return metadata;
}

}  // namespace pumice
