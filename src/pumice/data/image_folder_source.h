// Folders of pictures, one subfolder a class: DIR/class/name.png, or
// DIR/{train,test}/class/name.png.
#pragma once

#include <filesystem>
#include <memory>

#include "pumice/data/data_source.h"

namespace pumice {

// The parts are DIR/train and DIR/test (or DIR/val) if both are there; else everything is training.
// Ids are paths relative to DIR with '/'. Classes are sorted by name and their original label is
// the position; if every name is a number they are sorted as numbers and the number is the label.
// Files with other extensions than png, jpg and jpeg (in any case) are ignored, hidden ones
// skipped, links followed. Pictures become 32×32 in colour unless the options say otherwise. Throws
// Error for a class without pictures and for a test class that training does not have. Only names
// are read here.
std::unique_ptr<DataSource> open_image_folder(const std::filesystem::path& folder,
                                              const SourceOptions& options);

// Lacuna: an image folder of identities. Both parts must be there, and each identity in both.
std::unique_ptr<DataSource> open_lacuna(const std::filesystem::path& folder,
                                        const SourceOptions& options);

}  // namespace pumice
