// Arrays between the tests and the Python reference.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "pumice/core/atomic_file.h"
#include "pumice/data/npy_array.h"

namespace pumice::testing {

inline void save_npy(const std::filesystem::path& path, const at::Tensor& tensor) {
  write_npy(path, tensor);
}

inline at::Tensor load_npy(const std::filesystem::path& path) {
  const NpyArray array = parse_npy(read_file(path), path.string());
  const at::ScalarType type = array.type == "<f8"   ? at::kDouble
                              : array.type == "<i8" ? at::kLong
                                                    : at::kFloat;
  return at::from_blob(const_cast<char*>(array.bytes.data()), array.shape, type).clone();
}

}  // namespace pumice::testing
