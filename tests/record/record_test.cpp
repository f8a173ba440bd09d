#include "pumice/record/record.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pumice/core/atomic_file.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::refusal;
using testing::TemporaryFolder;

TEST(Record, SurvivesItsFileAndSaysWhatMadeIt) {
  const TemporaryFolder folder;
  write_record(folder / "r.json", {.kind = "forget", .content = {{"cohort_size", 25}}});
  const Record record = read_record(folder / "r.json");
  EXPECT_EQ(record.kind, "forget");
  EXPECT_EQ(record.content.at("cohort_size"), 25);
  EXPECT_TRUE(record.content.contains("revision"));
}

TEST(Record, OtherFilesAndLaterSchemasAreRefusedByName) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.json", "[1, 2]");
  EXPECT_NE(refusal([&] { read_record(folder / "a.json"); }).find("a.json: is no record"),
            std::string::npos);
  write_file_atomically(folder / "b.json", R"({"pumice_record": "forget", "schema": 99})");
  EXPECT_NE(
      refusal([&] { read_record(folder / "b.json"); }).find("schema 99, this version reads up to"),
      std::string::npos);
}

TEST(Record, TheDigestOfACohortNeedsItsKeyAndForgetsTheOrder) {
  const std::string key(64, 'a'), other(64, 'b');
  EXPECT_EQ(keyed_digest(key, {"x", "y"}), keyed_digest(key, {"y", "x"}));
  EXPECT_NE(keyed_digest(key, {"x", "y"}), keyed_digest(other, {"x", "y"}));
  EXPECT_NE(keyed_digest(key, {"x", "y"}), keyed_digest(key, {"xy"}));
}

TEST(Record, AMissingKeyIsMadeForItsOwnerAloneAndThenKept) {
  const TemporaryFolder folder;
  const std::string key = read_or_make_key(folder / "k");
  EXPECT_EQ(key.size(), 64U);
  EXPECT_EQ(read_or_make_key(folder / "k"), key);
  struct stat about {};
  ASSERT_EQ(::stat((folder / "k").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  write_file_atomically(folder / "bad", "secret\n");
  EXPECT_NE(refusal([&] { read_or_make_key(folder / "bad"); }).find("must be 64 hex digits"),
            std::string::npos);
}

}  // namespace
}  // namespace pumice
