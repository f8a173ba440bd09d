// Tiny ImageNet's own layout: train/<wnid>/images/*.JPEG, val/images/*.JPEG,
// val/val_annotations.txt.
#pragma once

#include <filesystem>
#include <memory>

#include "pumice/data/data_source.h"

namespace pumice {

// `folder` is the one with train and val, or the one above it (tiny-imagenet-200). Its validation
// part is the test part here (the labels of its own test part are not published). Classes are the
// folders of train, sorted, named by their wnid; ids are paths relative to the folder with train
// and val. 64×64 in colour unless the options say otherwise. Throws Error for a picture without
// annotation or the reverse.
std::unique_ptr<DataSource> open_tiny_imagenet(const std::filesystem::path& folder,
                                               const SourceOptions& options);

}  // namespace pumice
