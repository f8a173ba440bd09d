#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "command.h"
#include "pumice/core/atomic_file.h"

namespace pumice {
namespace {

using testing::CommandResult;
using testing::content_of;
using testing::run_command;
using testing::TemporaryFolder;

const std::string golden = PUMICE_SOURCE_DIR "/tests/golden/";

class ReportCommand : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  CommandResult report(const std::string& arguments) const {
    return run_command(PUMICE_TOOL " report " + arguments);
  }
  void expect_refusal(const std::string& record, int exit_code, const std::string& sentence) const {
    const CommandResult result = report(record + " --out " + path("r.html"));
    EXPECT_EQ(result.exit_code, exit_code) << result.error;
    EXPECT_NE(result.error.find(sentence), std::string::npos) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_FALSE(std::filesystem::exists(path("r.html")));
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(ReportCommand, MakesOnePageOfSeveralRecordsAndSaysTheVerdicts) {
  const CommandResult result =
      report(golden + "forget.json " + golden + "audit.json --out " + path("r.html"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.output.find("scrubbed.safetensors leaks"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("from 2 records"), std::string::npos) << result.output;
  const std::string page = content_of(path("r.html"));
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("What is not proved"), std::string::npos);

  const CommandResult again = report(golden + "audit.json --out " + path("r.html"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.error.find("without --force"), std::string::npos);
  EXPECT_EQ(content_of(path("r.html")), page);
  EXPECT_EQ(report(golden + "audit.json --force --out " + path("r.html")).exit_code, 0);
}

TEST_F(ReportCommand, BadInputGetsOneSentenceAndWritesNothing) {
  expect_refusal(path("none.json"), 1, "none.json");
  write_file_atomically(path("cut.json"), R"({"pumice_record": "audit", "schema")");
  expect_refusal(path("cut.json"), 1, "cut.json: is no record of pumice");
  write_file_atomically(path("new.json"), R"({"pumice_record": "audit", "schema": 99})");
  expect_refusal(path("new.json"), 1, "schema 99, this version reads up to 1");
  write_file_atomically(path("kind.json"), R"({"pumice_record": "poem", "schema": 1})");
  expect_refusal(path("kind.json"), 1, "kind 'poem', must be forget, audit or experiment");
  write_file_atomically(path("empty.json"), R"({"pumice_record": "experiment", "schema": 1})");
  expect_refusal(path("empty.json"), 1, "empty.json: is not as docs/records.md says");
  std::filesystem::create_directory(path("folder"));
  expect_refusal(path("folder"), 1, "has no record");
}

TEST_F(ReportCommand, WrongUseIsExitCodeTwo) {
  EXPECT_EQ(report("--out " + path("r.html")).exit_code, 2);
  EXPECT_EQ(report(golden + "audit.json").exit_code, 2);
  const CommandResult pdf = report(golden + "audit.json --out " + path("r.pdf"));
  EXPECT_EQ(pdf.exit_code, 2);
  EXPECT_NE(pdf.error.find("must end in .html"), std::string::npos) << pdf.error;
}

}  // namespace
}  // namespace pumice
