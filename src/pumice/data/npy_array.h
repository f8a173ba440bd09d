// One array in NumPy's .npy format, versions 1 to 3: little-endian, C order.
//
// "\x93NUMPY", version, length of the header, a Python dictionary with descr, fortran_order and
// shape, then the values.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pumice {

struct NpyArray {
  std::string type;  // numpy's descr: "|u1", "<f4", "<i8", "<U12", "|S7"
  std::vector<std::int64_t> shape;
  std::string bytes;  // the values alone

  std::int64_t count() const;
};

// `name` is what errors call the array ("data.npz: images"). Throws Error if the header is not as
// above, if the values are big-endian or in Fortran order, or if there are more or fewer bytes than
// announced.
NpyArray parse_npy(const std::string& content, const std::string& name);

// Integers of any width, or strings ("<U", "|S") as UTF-8; both throw Error for other types and for
// arrays that are not one-dimensional.
std::vector<std::int64_t> npy_integers(const NpyArray& array, const std::string& name);
std::vector<std::string> npy_strings(const NpyArray& array, const std::string& name);

// Writes a float32, float64, int64 or uint8 tensor for numpy.load, whole or not at all. Throws
// Error if it cannot.
void write_npy(const std::filesystem::path& path, const at::Tensor& tensor);

}  // namespace pumice
