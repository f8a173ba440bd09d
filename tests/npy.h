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
  const at::Tensor values = tensor.contiguous();
  const std::string type = values.scalar_type() == at::kLong     ? "<i8"
                           : values.scalar_type() == at::kDouble ? "<f8"
                                                                 : "<f4";
  std::string shape;
  for (const std::int64_t extent : values.sizes()) shape += std::to_string(extent) + ",";
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((header.size() + 11) / 64 * 64 + 53, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  out.put(static_cast<char>(header.size() & 0xff)).put(static_cast<char>(header.size() >> 8));
  out << header;
  out.write(static_cast<const char*>(values.data_ptr()),
            static_cast<std::streamsize>(values.nbytes()));
}

inline at::Tensor load_npy(const std::filesystem::path& path) {
  const NpyArray array = parse_npy(read_file(path), path.string());
  const at::ScalarType type = array.type == "<f8"   ? at::kDouble
                              : array.type == "<i8" ? at::kLong
                                                    : at::kFloat;
  return at::from_blob(const_cast<char*>(array.bytes.data()), array.shape, type).clone();
}

}  // namespace pumice::testing
