#include "pumice/data/idx_source.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "command.h"
#include "data/made_files.h"
#include "pumice/data/catalog.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

std::string error_after_writing(const std::string& file, const std::string& bytes) {
  const TemporaryFolder folder;
  write_idx_folder(folder.path());
  write_bytes(folder / file, bytes);
  return error_of([&] { open_idx(folder.path(), {}, {}); });
}

TEST(IdxSource, ListsAndReadsWhatIsThere) {
  const TemporaryFolder folder;
  write_idx_folder(folder.path());
  const auto source = open_idx(folder.path(), {}, {});
  EXPECT_EQ(source->classes().names, (std::vector<std::string>{"0", "1", "3"}));
  EXPECT_EQ(source->classes().original_labels, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(source->listing(Part::train).ids[4], "train/00004");
  EXPECT_EQ(source->listing(Part::train).labels, (std::vector<std::int64_t>{2, 1, 2, 1, 0}));
  EXPECT_EQ(source->listing(Part::test).ids[1], "test/00001");
  const at::Tensor images = source->images(Part::train, {4, 2});
  EXPECT_EQ(images.sizes(), (at::IntArrayRef{2, 1, 2, 2}));
  EXPECT_EQ(images[0].max().item<int>(), 4);
  EXPECT_EQ(images[1].min().item<int>(), 2);
}

TEST(IdxSource, ReadsGzipAndTheSpellingWithADot) {
  const TemporaryFolder folder;
  write_idx_folder(folder.path());
  std::filesystem::remove(folder / "train-images-idx3-ubyte");
  const std::string bytes = idx_images(5);
  gzFile file = gzopen((folder / "train-images.idx3-ubyte.gz").c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  EXPECT_EQ(open_idx(folder.path(), {}, {})->images(Part::train, {3})[0].max().item<int>(), 3);
}

TEST(IdxSource, AppliesSizeAndChannels) {
  const TemporaryFolder folder;
  write_idx_folder(folder.path());
  const auto source = open_idx(folder.path(), {}, {.image_size = 4, .channels = 3});
  EXPECT_TRUE(at::equal(source->images(Part::train, {3}), at::full({1, 3, 4, 4}, 3, at::kByte)));
}

TEST(IdxSource, TestFilesMayBeMissingTogetherOnly) {
  const TemporaryFolder folder;
  write_idx_folder(folder.path());
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  expect_contains(error_of([&] { open_idx(folder.path(), {}, {}); }), "t10k-labels");
  std::filesystem::remove(folder / "t10k-images-idx3-ubyte");
  EXPECT_EQ(open_idx(folder.path(), {}, {})->listing(Part::test).size(), 0);
}

TEST(IdxSource, RefusesTruncatedLabels) {
  const std::string bytes = idx_labels({3, 1, 3, 1, 0});
  expect_contains(error_after_writing("train-labels-idx1-ubyte", bytes.substr(0, bytes.size() - 1)),
                  "truncated");
  expect_contains(error_after_writing("train-labels-idx1-ubyte", bytes.substr(0, 6)), "truncated");
  expect_contains(error_after_writing("train-labels-idx1-ubyte", ""), "truncated");
}

TEST(IdxSource, RefusesTrailingBytesAndWrongMagic) {
  expect_contains(error_after_writing("train-images-idx3-ubyte", idx_images(5) + "x"), "trailing");
  expect_contains(error_after_writing("train-images-idx3-ubyte", idx_labels({1, 2})), "not an idx");
}

TEST(IdxSource, RefusesCountsThatDisagree) {
  const std::string error = error_after_writing("train-labels-idx1-ubyte", idx_labels({1, 2}));
  expect_contains(error, "2 labels, but 5 images");
}

TEST(IdxSource, RefusesAHeaderThatAnnouncesTooMuch) {
  const std::string lie = std::string("\0\0\x08\x03", 4) + big_endian(0xFFFFFFFF) +
                          big_endian(0xFFFFFFFF) + big_endian(0xFFFFFFFF);
  expect_contains(error_after_writing("train-images-idx3-ubyte", lie),
                  "more than the file can hold");
}

TEST(IdxSource, RefusesADamagedGzipFile) {
  const TemporaryFolder folder;
  write_idx_folder(folder.path());
  std::filesystem::remove(folder / "train-images-idx3-ubyte");
  const std::filesystem::path path = folder / "train-images-idx3-ubyte.gz";
  const std::string bytes = idx_images(5);
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::string packed = content_of(path);
  packed[packed.size() - 6] ^= 1;  // its checksum
  write_bytes(path, packed);
  expect_contains(error_of([&] { open_idx(folder.path(), {}, {}); }), path.string());
}

TEST(IdxSource, RefusesLabelsWithoutAName) {
  const TemporaryFolder folder;
  write_idx_folder(folder.path());
  expect_contains(error_of([&] { open_idx(folder.path(), {"a", "b"}, {}); }), "label 3");
}

TEST(FashionMnist, HasItsKnownLabelsAndNames) {
  const CatalogEntry* entry = find_in_catalog("fashion-mnist");
  ASSERT_NE(entry, nullptr);
  if (!std::filesystem::is_directory(entry->package_folder)) GTEST_SKIP() << "not installed";
  const auto source = open_idx(entry->package_folder, fashion_mnist_class_names(), {});
  const Listing& train = source->listing(Part::train);
  const Listing& test = source->listing(Part::test);
  EXPECT_EQ(train.size(), 60000);
  EXPECT_EQ(test.size(), 10000);
  EXPECT_EQ(std::vector<std::int64_t>(train.labels.begin(), train.labels.begin() + 5),
            (std::vector<std::int64_t>{9, 0, 0, 3, 0}));
  EXPECT_EQ(std::vector<std::int64_t>(test.labels.begin(), test.labels.begin() + 5),
            (std::vector<std::int64_t>{9, 2, 1, 1, 6}));
  EXPECT_EQ(source->classes().names[9], "Ankle boot");
  EXPECT_EQ(source->images(Part::train, {0}).sizes(), (at::IntArrayRef{1, 1, 28, 28}));
}

}  // namespace
}  // namespace pumice::testing
