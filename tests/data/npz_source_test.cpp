#include "pumice/data/npz_source.h"

#include <gtest/gtest.h>

#include "command.h"
#include "data/made_files.h"
#include "pumice/data/npy_array.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

class NpzSource : public ::testing::Test {
 protected:
  std::unique_ptr<DataSource> open(const std::string& name, const SourceOptions& options = {}) {
    const CommandResult made =
        run_command(std::string(PUMICE_PYTHON) + " " + PUMICE_SOURCE_DIR +
                    "/tests/fixtures/write_npz.py " + name + " " + path_.string());
    EXPECT_EQ(made.exit_code, 0) << made.error;
    return open_npz(path_, options);
  }
  std::string error(const std::string& name) {
    return error_of([&] { open(name); });
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.npz";
};

TEST_F(NpzSource, ReadsBytesLabelsAndIds) {
  for (const char* name : {"plain", "compressed", "version2", "version3"}) {
    const auto source = open(name);
    EXPECT_EQ(source->classes().names, (std::vector<std::string>{"2", "5", "9"}));
    EXPECT_EQ(source->classes().original_labels, (std::vector<std::int64_t>{2, 5, 9}));
    const Listing& listing = source->listing(Part::train);
    EXPECT_EQ(listing.labels, (std::vector<std::int64_t>{1, 0, 1, 0, 2, 2}));
    EXPECT_EQ(listing.ids[3], "ä/3");
    const at::Tensor images = source->images(Part::train, {1});
    ASSERT_EQ(images.sizes(), (at::IntArrayRef{1, 3, 4, 5}));
    // numpy's element [1, y, x, c] is (60 + 15y + 3x + c) mod 251.
    EXPECT_EQ(images[0][2][3][4].item<int>(), (60 + 45 + 12 + 2) % 251);
    EXPECT_EQ(source->listing(Part::test).size(), 0);
  }
}

TEST_F(NpzSource, ReadsGreyWithoutIds) {
  const auto source = open("grey");
  EXPECT_EQ(source->listing(Part::train).ids[5], "npz/00005");
  EXPECT_EQ(source->images(Part::train, {0}).sizes(), (at::IntArrayRef{1, 1, 4, 5}));
}

TEST_F(NpzSource, UsesFloatsAsTheyAre) {
  const auto source = open("float");
  const at::Tensor images = source->images(Part::train, {1});
  ASSERT_EQ(images.scalar_type(), at::kFloat);
  ASSERT_EQ(images.sizes(), (at::IntArrayRef{1, 3, 4, 5}));
  EXPECT_FLOAT_EQ(images[0][2][3][4].item<float>(), 119.0F / 7);
  EXPECT_EQ(source->listing(Part::train).ids[2], "ccc");
}

TEST_F(NpzSource, TakesEveryIntegerTypeForLabels) {
  for (const char* type :
       {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}) {
    EXPECT_EQ(open(type)->classes().original_labels, (std::vector<std::int64_t>{2, 5, 9})) << type;
  }
}

TEST_F(NpzSource, NamesClassesByTheirLabels) {
  EXPECT_EQ(open("class_names")->classes().names, (std::vector<std::string>{"c2", "c5", "c9"}));
  expect_contains(error("few_class_names"), "class_names: 2 names, but label 2");
  expect_contains(error("same_class_names"), "repeated");
}

TEST_F(NpzSource, RefusesWhatItCannotUseAndNamesTheArray) {
  expect_contains(error("fortran"), "a.npz: images: in Fortran order");
  expect_contains(error("fortran"), "numpy.ascontiguousarray");
  expect_contains(error("big_endian"), "labels: type '>i4' is big-endian");
  expect_contains(error("float_labels"), "labels: type '<f8', must be an integer");
  expect_contains(error("negative_labels"), "labels: -1");
  expect_contains(error("float64"), "images: type '<f8', must be uint8 or float32");
  expect_contains(error("nan"), "not all values are finite");
  expect_contains(error("two_channels"), "2 channels, must be 1 or 3");
  expect_contains(error("few_labels"), "labels: 4 of them, but 6 images");
  expect_contains(error("few_ids"), "ids: 4 of them, but 6 images");
  expect_contains(error("same_ids"), "ids: the id 'x' occurs twice");
  expect_contains(error("empty_id"), "an id is empty");
  expect_contains(error("number_ids"), "ids: type '<i8', must be strings");
  expect_contains(error("no_labels"), "no array 'labels'");
  expect_contains(error("objects"), "labels: type '|O' is not a plain one");
  expect_contains(error("flat"), "images: 2 dimensions");
  expect_contains(error("empty"), "images: empty");
}

TEST_F(NpzSource, RefusesDamagedFiles) {
  expect_contains(error("short_array"),
                  "images: 353 bytes of values, but type and shape announce 360");
  expect_contains(error("bad_header"), "images: ");
  open("plain");
  const std::string whole = content_of(path_);
  write_bytes(path_, whole.substr(0, whole.size() / 2));
  expect_contains(error_of([&] { open_npz(path_, {}); }), "a.npz");
  std::string changed = whole;
  changed[changed.find("NUMPY") + 200] ^= 1;
  write_bytes(path_, changed);
  expect_contains(error_of([&] { open_npz(path_, {}); }), "images: damaged");
  write_bytes(path_, "nothing");
  expect_contains(error_of([&] { open_npz(path_, {}); }), "not an .npz file");
  expect_contains(error_of([&] { open_npz(folder_ / "none.npz", {}); }), "no such file");
}

std::string npy(const std::string& header, const std::string& values) {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         values;
}

TEST(NpyArray, RefusesHeadersThatAreNotNumpys) {
  const auto error = [](const std::string& header) {
    return error_of([&] { parse_npy(npy(header, "abcd"), "x"); });
  };
  EXPECT_EQ(
      parse_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n", "abcd"), "x")
          .shape,
      (std::vector<std::int64_t>{4}));
  expect_contains(error("{'descr': '|u1', 'fortran_order': False}"), "damaged");
  expect_contains(error("{'descr': '|u1', 'fortran_order': Maybe, 'shape': (4,)}"), "damaged");
  expect_contains(error("{'descr': '|u1', 'fortran_order': False, 'shape': (-4,)}"), "damaged");
  expect_contains(error("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)} more"), "damaged");
  expect_contains(error("{'descr': '|u1', 'descr': '|u1', 'shape': (4,)}"),
                  "'descr' is unknown or repeated");
  expect_contains(error("{'descr': '<i9999999', 'fortran_order': False, 'shape': (4,)}"), "plain");
  expect_contains(error("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (4,)}"),
                  "structured");
  expect_contains(
      error("{'descr': '<i8', 'fortran_order': False, 'shape': (4611686018427387904, 8)}"),
      "more than any file can hold");
  expect_contains(error_of([] { parse_npy(std::string("\x93NUMPY\x07\x00\x00\x00", 10), "x"); }),
                  "version 7");
  expect_contains(error_of([] { parse_npy(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "x"); }),
                  "truncated");
}

}  // namespace
}  // namespace pumice::testing
