// MNIST-style folders: four idx files, plain or gzip.
//
//   train-images-idx3-ubyte[.gz]  train-labels-idx1-ubyte[.gz]  t10k-images-…  t10k-labels-…
//   (or with a dot: train-images.idx3-ubyte)
// An idx file is 0x00 0x00 0x08 <dimensions>, each dimension as a big-endian uint32, then bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pumice/data/data_source.h"

namespace pumice {

// Ids are "train/00017" and "test/00003". With `class_names`, label k is called class_names[k];
// without, the classes are the labels that occur, named by their digits. The test files may be
// missing together. Throws Error naming the file: wrong magic, counts that disagree, truncated,
// trailing bytes. All images are read at once.
std::unique_ptr<DataSource> open_idx(const std::filesystem::path& folder,
                                     const std::vector<std::string>& class_names,
                                     const SourceOptions& options);

}  // namespace pumice
