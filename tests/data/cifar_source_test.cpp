#include "pumice/data/cifar_source.h"

#include <gtest/gtest.h>

#include "command.h"
#include "data/made_files.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

void write_cifar100_folder(const std::filesystem::path& folder) {
  std::string names;
  for (int k = 0; k < 100; ++k) names += "class" + std::to_string(k) + "\n";
  write_bytes(folder / "fine_label_names.txt", names);
  write_bytes(folder / "train.bin", cifar_record(std::string("\x03\x11", 2), 1) +
                                        cifar_record(std::string("\x00\x63", 2), 9));
  write_bytes(folder / "test.bin", cifar_record(std::string("\x01\x00", 2), 4));
}

TEST(CifarSource, ReadsTheBatchesOfCifar10InOrder) {
  const TemporaryFolder folder;
  write_cifar10_folder(folder.path());
  const auto source = open_cifar10(folder.path(), {});
  EXPECT_EQ(source->listing(Part::train).labels,
            (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(source->listing(Part::train).ids[7], "train/00007");
  EXPECT_EQ(source->listing(Part::test).ids[3], "test/00003");
  EXPECT_EQ(source->classes().names[6], "frog");
  const at::Tensor image = source->images(Part::train, {7})[0];  // batch 4, second record: 85
  EXPECT_EQ(image.sizes(), (at::IntArrayRef{3, 32, 32}));
  for (int channel = 0; channel < 3; ++channel) {
    EXPECT_EQ(image[channel].min().item<int>(), 85 + channel);
    EXPECT_EQ(image[channel].max().item<int>(), 85 + channel);
  }
}

TEST(CifarSource, PixelsStandRowByRow) {
  const TemporaryFolder folder;
  write_cifar10_folder(folder.path());
  std::string record = cifar_record(std::string(1, '\2'), 0);
  record[1 + 1024 + 32 * 3 + 5] = 99;  // green, row 3, column 5
  write_bytes(folder / "test_batch.bin", record);
  EXPECT_EQ(open_cifar10(folder.path(), {})->images(Part::test, {0})[0][1][3][5].item<int>(), 99);
}

TEST(CifarSource, ReadsTheFineLabelsOfCifar100) {
  const TemporaryFolder folder;
  write_cifar100_folder(folder / "cifar-100-binary");
  const auto source = open_cifar100(folder.path(), {});  // the folder above
  EXPECT_EQ(source->listing(Part::train).labels, (std::vector<std::int64_t>{17, 99}));
  EXPECT_EQ(source->listing(Part::test).labels, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(source->classes().names[17], "class17");
}

TEST(CifarSource, RefusesTruncatedMissingAndMislabelledFiles) {
  const TemporaryFolder folder;
  write_cifar10_folder(folder.path());
  const auto open = [&] { open_cifar10(folder.path(), {}); };
  const std::string whole = content_of(folder / "data_batch_3.bin");
  write_bytes(folder / "data_batch_3.bin", whole.substr(0, whole.size() - 1));
  expect_contains(error_of(open), "data_batch_3.bin: 6145 bytes");
  write_bytes(folder / "data_batch_3.bin", "");
  expect_contains(error_of(open), "data_batch_3.bin: 0 bytes");
  write_bytes(folder / "data_batch_3.bin", cifar_record(std::string(1, '\x0a'), 0));
  expect_contains(error_of(open), "label 10 in record 0");
  std::filesystem::remove(folder / "data_batch_3.bin");
  expect_contains(error_of(open), "data_batch_3.bin: no such file");
}

TEST(CifarSource, RefusesWrongClassNamesAndEmptyFolders) {
  const TemporaryFolder folder;
  expect_contains(error_of([&] { open_cifar10(folder.path(), {}); }), "test_batch.bin");
  write_cifar10_folder(folder.path());
  write_bytes(folder / "batches.meta.txt", "cat\ndog\n");
  expect_contains(error_of([&] { open_cifar10(folder.path(), {}); }), "2 class names, must be 10");
  expect_contains(error_of([&] { open_cifar10(folder / "none", {}); }), "no such folder");
}

}  // namespace
}  // namespace pumice::testing
