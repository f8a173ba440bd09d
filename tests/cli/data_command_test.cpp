#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "data/made_files.h"
#include "temporary_folder.h"

namespace pumice::testing {
namespace {

namespace fs = std::filesystem;

class DataCommandFull : public ::testing::Test {
 protected:
  DataCommandFull() {
    for (const char* name : {"cat", "dog"}) {
      for (int k = 0; k < 6; ++k) {
        for (const char* part : {"train", "test"}) {
          write_square(folder_ / "pictures" / part / name / (std::to_string(k) + ".png"), 20 * k,
                       50, 90 + k);
        }
      }
    }
  }
  CommandResult pumice(const std::string& arguments) const {
    return run_command("XDG_CACHE_HOME=" + (folder_ / "cache").string() + " " + PUMICE_TOOL + " " +
                       arguments);
  }
  std::string spec() const { return "folder:" + (folder_ / "pictures").string(); }

  TemporaryFolder folder_;
};

TEST_F(DataCommandFull, ListSaysWhatIsHere) {
  const CommandResult result = pumice("data list");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* name :
       {"fashion-mnist", "mnist", "cifar10", "cifar100", "tiny-imagenet", "lacuna"}) {
    expect_contains(result.output, name);
  }
  expect_contains(result.output, (folder_ / "cache/pumice").string());
  const auto rows = nlohmann::json::parse(pumice("data list --json").output);
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[2]["name"], "cifar10");
  EXPECT_EQ(rows[2]["here"], false);
}

TEST_F(DataCommandFull, GetTakesAFolderIntoTheCache) {
  write_cifar10_folder(folder_ / "mine");
  const CommandResult result = pumice("data get cifar10 --from " + (folder_ / "mine").string());
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_TRUE(fs::exists(folder_ / "cache/pumice/cifar10/test_batch.bin"));
  EXPECT_EQ(pumice("data info cifar10").exit_code, 0);
  expect_contains(pumice("data get cifar10").output, "already here");
}

TEST_F(DataCommandFull, GetRefusesUnknownNamesAndBadSources) {
  const CommandResult misspelt = pumice("data get cifar11");
  EXPECT_EQ(misspelt.exit_code, 2);
  expect_contains(misspelt.error, "did you mean 'cifar10'");
  const CommandResult missing = pumice("data get cifar10 --from /nowhere/at/all");
  EXPECT_EQ(missing.exit_code, 1);
  expect_contains(missing.error, "no such file or folder");
  EXPECT_EQ(pumice("data get lacuna").exit_code, 1);
  EXPECT_EQ(pumice("data get cifar10 --from x --url y").exit_code, 2);
}

TEST_F(DataCommandFull, InfoDescribesTheSelection) {
  const CommandResult result =
      pumice("data info " + spec() + " --classes dog --per-class 4 --image-size 8");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_contains(result.output, "8×8, 3 channels, uint8");
  expect_contains(result.output, "blake2b:");
  const auto info = nlohmann::json::parse(
      pumice("data info " + spec() + " --per-class 4 --validation-per-class 1 --channels 1 --json")
          .output);
  EXPECT_EQ(info["train"]["images"], 8);
  EXPECT_EQ(info["validation"]["images"], 2);
  EXPECT_EQ(info["test"]["per_class"], nlohmann::json::parse("[6, 6]"));
  EXPECT_EQ(info["channels"], 1);
  EXPECT_EQ(info["width"], 32);
  EXPECT_EQ(info["classes"][1]["name"], "dog");
}

TEST_F(DataCommandFull, InfoIsReproducibleAndFollowsTheSeed) {
  const auto digest = [&](const std::string& options) {
    const CommandResult result = pumice("data info " + spec() + " --per-class 3 --json " + options);
    return nlohmann::json::parse(result.output)["train"]["digest"].get<std::string>();
  };
  EXPECT_EQ(digest("--seed 1"), digest(""));
  EXPECT_NE(digest("--seed 1"), digest("--seed 2"));
}

TEST_F(DataCommandFull, InfoRefusesWhatIsNotThere) {
  EXPECT_EQ(pumice("data info cifar100").exit_code, 1);
  expect_contains(pumice("data info cifar100").error, "pumice data get cifar100");
  EXPECT_EQ(pumice("data info " + spec() + " --classes cow").exit_code, 1);
  EXPECT_EQ(pumice("data info " + spec() + " --channels 2").exit_code, 2);
  EXPECT_EQ(pumice("data info").exit_code, 2);
  const CommandResult misspelt = pumice("data info " + spec() + " --per-clas 3");
  EXPECT_EQ(misspelt.exit_code, 2);
  expect_contains(misspelt.error, "did you mean '--per-class'");
}

TEST_F(DataCommandFull, MakeCohortWritesIdsAndDoesNotOverwrite) {
  const fs::path out = folder_ / "cohort.txt";
  const std::string command = "data make cohort --data " + spec() +
                              " --forget-class dog --forget-count 3 --seed 1 --out " + out.string();
  const CommandResult result = pumice(command);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_contains(result.output, "3 ids of 12 training examples");
  const std::string first = content_of(out);
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 3);
  expect_contains(first, "train/dog/");
  EXPECT_EQ(first.find("cat"), std::string::npos);
  const CommandResult again = pumice(command);
  EXPECT_EQ(again.exit_code, 1);
  expect_contains(again.error, "--force");
  EXPECT_EQ(pumice(command + " --force").exit_code, 0);
  EXPECT_EQ(content_of(out), first);
  EXPECT_EQ(pumice("data make cohort --data " + spec() + " --forget-class dog --out x").exit_code,
            2);
  EXPECT_EQ(pumice("data make cohort --data " + spec() +
                   " --forget-class dog --forget-count 7 --out " + (folder_ / "x").string())
                .exit_code,
            1);
}

TEST_F(DataCommandFull, MakeLacunaMakesBothSets) {
  const CommandResult result = pumice("data make lacuna --from " + (folder_ / "pictures").string() +
                                      " --out " + (folder_ / "out").string() +
                                      " --small 1 --large 0 --pictures 10 --test 3 --image-size 8");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  expect_contains(result.output, "2 of 2 identities have at least 10 pictures");
  EXPECT_EQ(pumice("data info lacuna:" + (folder_ / "out/lacuna-1").string()).exit_code, 0);
  const CommandResult few = pumice("data make lacuna --from " + (folder_ / "pictures").string() +
                                   " --out " + (folder_ / "more").string());
  EXPECT_EQ(few.exit_code, 1);
  expect_contains(few.error, "0 identities with at least 500 pictures (of 2), but 110 are needed");
}

TEST_F(DataCommandFull, EverySubcommandHasHelpWithAnExample) {
  for (const char* command : {"data", "data list", "data get", "data info", "data make",
                              "data make lacuna", "data make cohort"}) {
    const CommandResult result = pumice(std::string(command) + " --help");
    EXPECT_EQ(result.exit_code, 0) << command;
    expect_contains(result.output, "Example: pumice data");
  }
  EXPECT_EQ(pumice("data").exit_code, 2);
  EXPECT_EQ(pumice("data make").exit_code, 2);
  EXPECT_EQ(pumice("data lst").exit_code, 2);
}

}  // namespace
}  // namespace pumice::testing
