// Where a training starts, and what its files say about it.
#pragma once

#include <cstdint>
#include <memory>

#include "pumice/model/checkpoint.h"

namespace pumice {

struct Start {
  std::shared_ptr<Model> model;
  Weights weights;
};

// The body's weights and buffers with a fresh head for `classes` classes, drawn from the seed. A
// network that is not of the zoo keeps its head: Error.
Start with_fresh_head(const Checkpoint& body, std::int64_t classes, std::uint64_t seed);

// Fresh weights throughout, for the images and classes of `train`.
Start fresh_start(const std::string& architecture, double width, const Dataset& train,
                  std::uint64_t seed);

// What the files of a training on this selection say (checkpoint.h); excluded examples only as a
// number.
Metadata training_metadata(const DataRequest& request, const Dataset& train,
                           const Normalization& normalization, std::size_t excluded, bool replace);

}  // namespace pumice
