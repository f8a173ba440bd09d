// Models on disk: safetensors for the zoo, TorchScript for everything else; told apart by content.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "pumice/data/data_request.h"
#include "pumice/data/normalization.h"
#include "pumice/model/model.h"
#include "pumice/model/zoo.h"

namespace pumice {

struct Checkpoint {
  std::shared_ptr<Model> model;
  Weights weights;
  Metadata metadata;
};

// Throws Error with the file's name for anything that does not fit together.
Checkpoint open_checkpoint(const std::filesystem::path& path);

// Metadata keys, beside those of architecture_metadata(): all values are text, structured ones are
// JSON.
//   mean, std          normalisation, lists with one number a channel
//   data               the DataRequest that selected the training data
//   data_digest        digest of the selected training set
//   class_names, original_labels   the label map: position → name, original label
//   recipe             training options; excluded examples only as a number
//   init_digest        digest of the start; start: "true" in the file of the start itself
//   created_by, revision
Normalization stored_normalization(const Metadata& metadata);  // empty if there is none
// What the model was trained with, else `given`, else measured on `train`; empty for float32 images.
// One number in `given` stands for all channels. Throws Error if it contradicts the model, does not
// fit the images, or a deviation is not > 0.
Normalization normalization_for(const Metadata& metadata, const Dataset& train,
                                const Normalization& given = {});
std::optional<DataRequest> stored_data_request(const Metadata& metadata);  // none in foreign files
void store(Metadata& metadata, const Normalization& normalization);
void store(Metadata& metadata, const DataRequest& request);
void store(Metadata& metadata, const ClassTable& classes);

}  // namespace pumice
