// CIFAR-10 and CIFAR-100 in their official binary format.
//
// A record is the label (CIFAR-100: the coarse, then the fine label, one byte each) and 3,072
// bytes: 32×32 row by row in red, then green, then blue. Files of CIFAR-10: data_batch_1.bin …
// data_batch_5.bin, test_batch.bin, batches.meta.txt; of CIFAR-100: train.bin, test.bin,
// fine_label_names.txt.
#pragma once

#include <filesystem>
#include <memory>

#include "pumice/data/data_source.h"

namespace pumice {

// `folder` is the one with these files, or the one above it (cifar-10-batches-bin,
// cifar-100-binary). Ids are "train/00017", counted through the batches, and "test/00003".
// CIFAR-100 has its fine labels. Throws Error naming the file: missing, not a whole number of
// records, a label out of range. All images (180 MB) are read at once.
std::unique_ptr<DataSource> open_cifar10(const std::filesystem::path& folder,
                                         const SourceOptions& options);
std::unique_ptr<DataSource> open_cifar100(const std::filesystem::path& folder,
                                          const SourceOptions& options);

}  // namespace pumice
