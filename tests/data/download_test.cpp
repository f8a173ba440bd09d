#include "pumice/data/download.h"

#include <gtest/gtest.h>

#include "command.h"
#include "data/made_files.h"
#include "data/range_server.h"
#include "pumice/data/archive.h"
#include "pumice/data/checksum.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

namespace fs = std::filesystem;

std::string made_content() {
  std::string content;
  for (int i = 0; i < 200'000; ++i) content += static_cast<char>(i * 7 + i / 256);
  return content;
}

class Download : public ::testing::Test {
 protected:
  Download() {
    write_bytes(folder_ / "served/file.bin", content_);
    md5_ = md5_of_file(folder_ / "served/file.bin");
  }
  DownloadOptions options() const { return {.md5 = md5_, .progress = ProgressMode::quiet}; }

  TemporaryFolder folder_;
  std::string content_ = made_content();
  std::string md5_;
  fs::path target_ = folder_ / "file.bin";
  fs::path part_ = folder_ / "file.bin.part";
};

TEST(Checksum, AgreesWithPublishedTestVectors) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", "abc");
  EXPECT_EQ(md5_of_file(folder / "a"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(
      sha512_base64_of_file(folder / "a"),
      "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==");
}

TEST_F(Download, FetchesAWholeFile) {
  const RangeServer server(folder_ / "served", "ranges");
  download(server.address("file.bin"), target_, options());
  EXPECT_EQ(content_of(target_), content_);
  EXPECT_FALSE(fs::exists(part_));
  EXPECT_EQ(server.log(), "/file.bin - 200\n");
}

TEST_F(Download, ContinuesAPartByARangeRequest) {
  const RangeServer server(folder_ / "served", "ranges");
  write_bytes(part_, content_.substr(0, 150'000));
  download(server.address("file.bin"), target_, options());
  EXPECT_EQ(content_of(target_), content_);
  EXPECT_EQ(server.log(), "/file.bin bytes=150000- 206\n");
}

TEST_F(Download, KeepsThePartWhenTheConnectionBreaksAndContinuesIt) {
  const RangeServer server(folder_ / "served", "cut");
  const std::string error =
      error_of([&] { download(server.address("file.bin"), target_, options()); });
  expect_contains(error, "file.bin.part is kept");
  EXPECT_EQ(fs::file_size(part_), content_.size() / 2);
  download(server.address("file.bin"), target_, options());
  EXPECT_EQ(content_of(target_), content_);
}

TEST_F(Download, StartsAgainWhenTheServerIgnoresRanges) {
  const RangeServer server(folder_ / "served", "no-ranges");
  write_bytes(part_, content_.substr(0, 150'000));
  download(server.address("file.bin"), target_, options());
  EXPECT_EQ(content_of(target_), content_);
}

TEST_F(Download, StartsAgainWhenTheServerAnswersWithAnotherRange) {
  const RangeServer server(folder_ / "served", "wrong-range");
  write_bytes(part_, content_.substr(0, 150'000));
  download(server.address("file.bin"), target_, options());
  EXPECT_EQ(content_of(target_), content_);
  EXPECT_EQ(server.log(), "/file.bin bytes=150000- 206\n/file.bin - 200\n");
}

TEST_F(Download, TakesACompletePartAsItIs) {
  const RangeServer server(folder_ / "served", "ranges");
  write_bytes(part_, content_);
  download(server.address("file.bin"), target_, options());
  EXPECT_EQ(content_of(target_), content_);
  EXPECT_EQ(server.log(), "/file.bin bytes=200000- 416\n");
}

TEST_F(Download, StartsAgainWhenThePartIsLongerThanTheFile) {
  const RangeServer server(folder_ / "served", "ranges");
  write_bytes(part_, content_ + "more");
  download(server.address("file.bin"), target_, options());
  EXPECT_EQ(content_of(target_), content_);
}

TEST_F(Download, RemovesAFileWithAWrongChecksum) {
  const RangeServer server(folder_ / "served", "ranges");
  const std::string wrong = "00000000000000000000000000000000";
  const std::string error = error_of([&] {
    download(server.address("file.bin"), target_, {.md5 = wrong, .progress = ProgressMode::quiet});
  });
  expect_contains(error, "MD5 is " + md5_ + ", must be " + wrong);
  EXPECT_FALSE(fs::exists(part_));
  EXPECT_FALSE(fs::exists(target_));
}

TEST_F(Download, TellsAnUnreachableAddressFromOtherTrouble) {
  const RangeServer server(folder_ / "served", "ranges");
  EXPECT_THROW(download(server.address("none.bin"), target_, options()), UnreachableAddress);
  expect_contains(error_of([&] { download(server.address("none.bin"), target_, options()); }),
                  "404");
  EXPECT_THROW(download("http://127.0.0.1:1/file.bin", target_, options()), UnreachableAddress);
  expect_contains(error_of([&] { download("file:///etc/hostname", target_, options()); }), "file");
  EXPECT_FALSE(fs::exists(target_));
}

class Archive : public ::testing::Test {
 protected:
  fs::path make(const std::string& name) {
    const fs::path path = folder_ / (name.starts_with("zip") ? "a.zip" : "a.tar.gz");
    const CommandResult made =
        run_command(std::string(PUMICE_PYTHON) + " " + PUMICE_SOURCE_DIR +
                    "/tests/fixtures/write_archives.py " + name + " " + path.string());
    EXPECT_EQ(made.exit_code, 0) << made.error;
    return path;
  }
  void extract(const fs::path& archive, std::uint64_t largest = 1 << 20) {
    fs::create_directories(folder_ / "outer/inner");
    extract_archive(archive, folder_ / "outer/inner", largest);
  }

  TemporaryFolder folder_;
};

TEST_F(Archive, UnpacksTarAndZip) {
  for (const char* name : {"tar", "zip"}) {
    extract(make(name));
    EXPECT_EQ(content_of(folder_ / "outer/inner/folder/good.txt"), "good");
    fs::remove_all(folder_ / "outer");
  }
}

TEST_F(Archive, RefusesPathsThatLeadOut) {
  for (const char* name : {"tar-parent", "zip-parent"}) {
    expect_contains(error_of([&] { extract(make(name)); }), "'..'");
  }
  expect_contains(error_of([&] { extract(make("tar-absolute")); }), "absolute");
  EXPECT_FALSE(fs::exists(folder_ / "outer/escaped.txt"));
  EXPECT_FALSE(fs::exists(folder_ / "escaped.txt"));
  EXPECT_FALSE(fs::exists("/tmp/pumice-escaped.txt"));
}

TEST_F(Archive, RefusesLinksAndDevices) {
  for (const char* name : {"tar-symlink", "tar-hardlink", "tar-fifo"}) {
    expect_contains(error_of([&] { extract(make(name)); }), "link or a device");
  }
}

TEST_F(Archive, RefusesTooMuchAndDamage) {
  expect_contains(error_of([&] { extract(make("tar-large"), 50'000); }), "more than 50000 bytes");
  const fs::path path = make("tar-large");
  const std::string whole = content_of(path);
  write_bytes(path, whole.substr(0, whole.size() / 2));
  expect_contains(error_of([&] { extract(path); }), "a.tar.gz: damaged");
  write_bytes(path, "no archive at all, just text");
  expect_contains(error_of([&] { extract(path); }), "a.tar.gz: damaged");
}

}  // namespace
}  // namespace pumice::testing
