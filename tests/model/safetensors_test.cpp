#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/model/safetensors.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::TemporaryFolder;

std::string file_with(const std::string& header, const std::string& data) {
  std::string content;
  for (int i = 0; i < 8; ++i)
    content += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
  return content + header + data;
}

// The sentence that reading this content ends with.
std::string refusal(const std::string& content) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "w.safetensors", content);
  try {
    read_safetensors(folder / "w.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refusal(const std::string& header, const std::string& data,
                    const std::string& sentence) {
  const std::string found = refusal(file_with(header, data));
  EXPECT_NE(found.find(sentence), std::string::npos) << found;
}

const std::string eight(8, 'x');

TEST(Safetensors, EveryTypeAndTheMetadataComeBack) {
  const TemporaryFolder folder;
  torch::manual_seed(1);
  TensorFile file;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                    at::kInt, at::kShort, at::kChar, at::kByte, at::kBool}) {
    file.tensors.emplace_back(c10::toString(type), (torch::rand({3, 5}) * 100).to(type));
  }
  file.tensors.emplace_back("scalar", torch::tensor(2.5));
  file.tensors.emplace_back("empty", torch::zeros({0, 4}));
  file.tensors.emplace_back("transposed", torch::rand({4, 6}).t());
  file.metadata = {{"architecture", "allcnn"}, {"umlaut", "größe \"quoted\""}};
  write_safetensors(folder / "w.safetensors", file);
  const TensorFile back = read_safetensors(folder / "w.safetensors");
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const auto found = std::find_if(back.tensors.begin(), back.tensors.end(),
                                    [&](const NamedTensor& other) { return other.first == name; });
    ASSERT_NE(found, back.tensors.end()) << name;
    EXPECT_EQ(found->second.scalar_type(), tensor.scalar_type());
    EXPECT_EQ(found->second.sizes(), tensor.sizes());
    EXPECT_TRUE(torch::equal(found->second, tensor)) << name;
  }
}

TEST(Safetensors, AnIndependentReaderAgrees) {
  const TemporaryFolder folder;
  const TensorFile file{.tensors = {{"a.weight", torch::arange(6, at::kFloat).view({2, 3})},
                                    {"b", torch::full({4}, -1.5)}},
                        .metadata = {{"created_by", "test"}}};
  write_safetensors(folder / "w.safetensors", file);
  const auto result =
      testing::run_command(std::string(PUMICE_PYTHON) +
                           " " PUMICE_SOURCE_DIR "/tests/fixtures/reference_networks.py read " +
                           (folder / "w.safetensors").string());
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["metadata"]["created_by"], "test");
  EXPECT_EQ(json["tensors"]["a.weight"], nlohmann::json::parse("[[2,3],15.0]"));
  EXPECT_EQ(json["tensors"]["b"], nlohmann::json::parse("[[4],-6.0]"));
}

TEST(Safetensors, RefusesFilesThatAreTooShort) {
  EXPECT_NE(refusal("").find("too short"), std::string::npos);
  EXPECT_NE(refusal("1234567").find("too short"), std::string::npos);
  EXPECT_NE(
      refusal(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}").find("the header claims"),
      std::string::npos);
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string whole =
      file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", eight);
  ASSERT_EQ(refusal(whole), "accepted");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
  }
}

TEST(Safetensors, RefusesHeadersThatAreNotJsonObjects) {
  expect_refusal("{", "", "not valid JSON");
  expect_refusal("[]", "", "must be a JSON object");
  expect_refusal(R"({"a":3})", "", "tensor 'a': its entry must be an object");
}

TEST(Safetensors, RefusesDuplicateNames) {
  expect_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                 eight, "the name 'a' occurs twice");
}

TEST(Safetensors, RefusesUnknownTypes) {
  expect_refusal(R"({"a":{"dtype":"F8","shape":[8],"data_offsets":[0,8]}})", eight,
                 "tensor 'a': dtype 'F8' is not supported");
  expect_refusal(R"({"a":{"dtype":7,"shape":[8],"data_offsets":[0,8]}})", eight,
                 "dtype must be a text");
}

TEST(Safetensors, RefusesShapesThatDoNotFitTheirBytes) {
  expect_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", eight,
                 "tensor 'a': 8 bytes, but its shape and type need 4");
  expect_refusal(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight,
                 "whole numbers >= 0");
  expect_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", eight,
                 "must be a pair");
  expect_refusal(R"({"a":{"dtype":"F32","shape":[2]}})", eight, "'data_offsets' is missing");
}

TEST(Safetensors, RefusesShapesWhoseProductWrapsAround) {
  // 2^62 × 4 × 4 bytes is 0 modulo 2^64.
  expect_refusal(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
                 eight, "shape asks for more than");
}

TEST(Safetensors, RefusesAbsurdExtentsBehindAZero) {
  expect_refusal(R"({"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}})",
                 eight, "shape asks for more than");
  expect_refusal(R"({"a":{"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]}})",
                 eight, "shape asks for more than");
}

TEST(Safetensors, RefusesRangesOutsideTheFile) {
  expect_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", eight,
                 "must lie in 0 … 8");
  expect_refusal(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[8,4]}})", eight,
                 "must lie in 0 … 8");
}

TEST(Safetensors, RefusesOverlapsGapsAndTrailingBytes) {
  expect_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                 R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                 eight, "tensor 'b' overlaps");
  expect_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight,
                 "tensor 'a' leaves a gap of 4 bytes");
  expect_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", eight,
                 "4 trailing bytes after the last tensor");
}

TEST(Safetensors, RefusesMetadataThatIsNotText) {
  expect_refusal(R"({"__metadata__":{"width":0.4}})", "", "__metadata__ 'width' must be a text");
}

TEST(Safetensors, SurvivesEveryFlippedByteOfTheHeader) {
  const std::string whole = file_with(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", eight);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char mask : {'\x01', '\x10', '\x7f'}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      refusal(damaged);  // either reading or a pumice::Error: anything else ends the test
    }
  }
}

}  // namespace
}  // namespace pumice
