#include "pumice/data/lacuna.h"

#include <gtest/gtest.h>

#include <set>

#include "command.h"
#include "data/made_files.h"
#include "pumice/data/data_source.h"
#include "pumice/data/picture_source.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

namespace fs = std::filesystem;

constexpr LacunaOptions small_options{
    .small = 2, .large = 3, .pictures = 6, .test = 2, .image_size = 8, .seed = 1};

// Seven "identities" of coloured squares; "few" has too few pictures.
void write_collection(const fs::path& folder) {
  for (int identity = 0; identity < 6; ++identity) {
    for (int k = 0; k < 4; ++k) {
      // The same names in both parts, so pooling must keep them apart.
      for (const char* part : {"train", "test"}) {
        const int shade = 40 * identity + 5 * k + (part[1] == 'r' ? 0 : 2);
        write_jpeg(folder / part / ("n" + std::to_string(identity)) / (std::to_string(k) + ".jpg"),
                   coloured_square(shade, shade, shade, 12));
      }
    }
  }
  write_square(folder / "train/few/1.png", 1, 2, 3);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::path& path : subfolders(folder)) names.insert(path.filename().string());
  return names;
}

TEST(MakeLacuna, WritesTwoDisjointSetsOfTheExactSize) {
  const TemporaryFolder folder;
  write_collection(folder / "from");
  const LacunaSummary summary = make_lacuna(folder / "from", folder / "out", small_options);
  EXPECT_EQ(summary.identities_found, 7);
  EXPECT_EQ(summary.identities_eligible, 6);
  ASSERT_EQ(summary.folders.size(), 2U);
  const std::set<std::string> small = names_in(folder / "out/lacuna-2/train");
  const std::set<std::string> large = names_in(folder / "out/lacuna-3/train");
  EXPECT_EQ(small.size(), 2U);
  EXPECT_EQ(large.size(), 3U);
  for (const std::string& name : small) EXPECT_FALSE(large.contains(name)) << name;
  for (const std::string& name : small) {
    EXPECT_EQ(picture_files(folder / "out/lacuna-2/train" / name).size(), 4U);
    EXPECT_EQ(picture_files(folder / "out/lacuna-2/test" / name).size(), 2U);
  }
  const auto source =
      open_source("lacuna:" + (folder / "out/lacuna-3").string(), {.image_size = 8});
  EXPECT_EQ(source->listing(Part::train).size(), 12);
  EXPECT_EQ(source->listing(Part::test).size(), 6);
  // Only the two sets are left, no temporary folders.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "out"), fs::directory_iterator()), 2);
}

TEST(MakeLacuna, TheSameSeedDrawsTheSameAndAnotherSeedDoesNot) {
  const TemporaryFolder folder;
  write_collection(folder / "from");
  LacunaOptions options = small_options;
  const auto listing = [&](const std::string& out) {
    make_lacuna(folder / "from", folder / out, options);
    std::vector<std::string> ids =
        open_source("lacuna:" + (folder / out / "lacuna-2").string())->listing(Part::test).ids;
    const auto more =
        open_source("lacuna:" + (folder / out / "lacuna-3").string())->listing(Part::test).ids;
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  };
  const auto first = listing("a");
  EXPECT_EQ(first, listing("b"));
  options.seed = 2;
  EXPECT_NE(first, listing("c"));
}

TEST(MakeLacuna, RefusesTooFewIdentitiesAndExistingOutput) {
  const TemporaryFolder folder;
  write_collection(folder / "from");
  LacunaOptions options = small_options;
  options.large = 5;
  const std::string error =
      error_of([&] { make_lacuna(folder / "from", folder / "out", options); });
  expect_contains(error, "6 identities with at least 6 pictures (of 7), but 7 are needed");
  fs::create_directories(folder / "out/lacuna-2");
  expect_contains(error_of([&] { make_lacuna(folder / "from", folder / "out", small_options); }),
                  "exists already");
}

TEST(MakeLacuna, RefusesOptionsThatMakeNoSense) {
  const TemporaryFolder folder;
  const auto error = [&](LacunaOptions options) {
    return error_of([&] { make_lacuna(folder.path(), folder / "out", options); });
  };
  expect_contains(error({.small = 0, .large = 0}), "not both 0");
  expect_contains(error({.small = 5, .large = 5}), "must differ");
  expect_contains(error({.pictures = 10, .test = 10}), "must be in 1 … 9");
  expect_contains(error({.image_size = 2}), "image-size 2");
}

TEST(MakeLacuna, LeavesNothingBehindWhenAPictureIsDamaged) {
  const TemporaryFolder folder;
  write_collection(folder / "from");
  for (int identity = 0; identity < 6; ++identity) {
    for (int k = 0; k < 4; ++k) {
      write_bytes(
          folder / "from/train" / ("n" + std::to_string(identity)) / (std::to_string(k) + ".jpg"),
          "broken");
    }
  }
  expect_contains(error_of([&] { make_lacuna(folder / "from", folder / "out", small_options); }),
                  "neither PNG nor JPEG");
  EXPECT_TRUE(fs::is_empty(folder / "out"));
}

}  // namespace
}  // namespace pumice::testing
