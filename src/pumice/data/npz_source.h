// Arrays that numpy.savez or savez_compressed wrote into one .npz file.
//
//   images       uint8 N×H×W×C or N×H×W (one channel), or float32 N×C×H×W, which is used as it is
//   labels       N integers of any type, >= 0: the original labels
//   ids          N strings, optional; otherwise "npz/00017"
//   class_names  strings, optional: class_names[label]; otherwise the label's digits
#pragma once

#include <filesystem>
#include <memory>

#include "pumice/data/data_source.h"

namespace pumice {

// Everything is the training part; give another file with --test. The classes are the labels that
// occur, ascending. Throws Error naming file and array. The whole file is read at once and is held
// twice for a moment.
std::unique_ptr<DataSource> open_npz(const std::filesystem::path& path,
                                     const SourceOptions& options);

}  // namespace pumice
