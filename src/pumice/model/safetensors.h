// The safetensors file format: eight bytes with the header's length (little-endian), a JSON header,
// then the tensors' bytes without gaps.
//
// Reading checks everything before it is believed: the header's length and JSON, duplicate names,
// known types, that each tensor's range has the size its shape asks for, that ranges neither
// overlap nor leave gaps, and that nothing follows the last one. Errors name the file, the tensor
// and the rule.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "pumice/core/atomic_file.h"
#include "pumice/model/weights.h"

namespace pumice {

using Metadata = std::map<std::string, std::string>;

struct TensorFile {
  std::vector<NamedTensor> tensors;  // in the order of their bytes
  Metadata metadata;
};

// Reads F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL. Cost: one copy of the file in memory.
TensorFile read_safetensors(const std::filesystem::path& path);

// Writes the same types, atomically; the header is padded with spaces so that data start at a
// multiple of eight.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file,
                       Readers readers = Readers::everyone);

}  // namespace pumice
