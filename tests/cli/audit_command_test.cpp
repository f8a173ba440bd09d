#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "pumice/model/checkpoint.h"
#include "temporary_folder.h"
#include "tool.h"

namespace pumice {
namespace {

using nlohmann::json;
using testing::body;
using testing::CommandResult;
using testing::content_of;
using testing::pumice;
using testing::run_command;
using testing::TemporaryFolder;

TEST(AuditCommand, WrongUseGetsOneSentenceAndExitCodeTwo) {
  const auto expect = [](const std::string& arguments, const std::string& sentence) {
    const CommandResult result =
        pumice("audit --model " + body + " --original " + body + " --cohort c.txt " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << result.error;
    EXPECT_NE(result.error.find(sentence), std::string::npos) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  };
  expect("--only erors", "--only: 'erors', must be one of");
  expect("--only erors", "did you mean 'errors'?");
  expect("--reference retrain", "--init: not given, --reference retrain trains from it");
  expect("--reference none r.safetensors", "'none' and something else, must stand alone");
  expect("--references 2", "--references: means nothing without --reference retrain");
  expect("--shadows 4", "--init: not given, shadow models are trained from it");
  expect("--shadow-method ntk", "--shadow-method: means nothing without --shadows");
  expect("--distribution d.safetensors", "--noise: not given");
  expect("--key k", "--key: means nothing without --record");
  expect("--init ''", "--init: empty, must name something");
}

class AuditCommandFull : public ::testing::Test {
 protected:
  // An original that repeats wrong labels: what it learned from the cohort shows.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    ok(pumice(
        "train --init " + body +
        " --classes 0-2 --per-class 12 --test-per-class 20 --epochs 25 --batch 8 --rate 0.003 "
        "--weight-decay 0.02 --no-early-stop --quiet --out " +
        path("w.safetensors")));
    ok(
        pumice("data make cohort --classes 0-2 --per-class 12 --forget-class 0 --forget-count 5 "
               "--out " +
               path("cohort.txt")));
    for (const char* order : {"1", "2"}) {
      ok(pumice("train --init " + path("w.start.safetensors") + " --exclude " + path("cohort.txt") +
                " --order-seed " + order + " --quiet --out " +
                path(std::string("r") + order + ".safetensors")));
    }
    ok(pumice("forget --model " + path("w.safetensors") + " --init " + path("w.start.safetensors") +
              " --cohort " + path("cohort.txt") +
              " --noise 1e-9 --noise-shape paper --distribution " + path("d.safetensors") +
              " --quiet --out " + path("s.safetensors")));
  }
  static void TearDownTestSuite() { delete folder_; }

  static void ok(const CommandResult& result) { ASSERT_EQ(result.exit_code, 0) << result.error; }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string models(const std::string& model) {
    return "audit --model " + path(model) + " --original " + path("w.safetensors") + " --cohort " +
           path("cohort.txt") + " ";
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* AuditCommandFull::folder_ = nullptr;

TEST_F(AuditCommandFull, ARecordHoldsEveryReadoutAndNeitherIdsNorNoise) {
  const std::string before = content_of(path("s.safetensors"));
  const CommandResult result =
      pumice(models("s.safetensors") + "--reference " + path("r1.safetensors") + " " +
             path("r2.safetensors") + " --noise 1e-9 --noise-shape paper --distribution " +
             path("d.safetensors") + " --relearn-epochs 2 --quiet --record " + path("audit.json"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.output.find("Overall: "), std::string::npos) << result.output;
  EXPECT_EQ(content_of(path("s.safetensors")), before);
  const json record = json::parse(content_of(path("audit.json")));
  EXPECT_EQ(record.at("pumice_record"), "audit");
  EXPECT_EQ(record.at("cohort_size"), 5);
  EXPECT_EQ(record.at("references").size(), 2);
  std::set<std::string> groups;
  for (const json& readout : record.at("readouts")) {
    groups.insert(readout.at("group"));
    EXPECT_FALSE(readout.at("definition").get<std::string>().empty());
    EXPECT_EQ(readout.at("references").size(), 2) << readout;
    EXPECT_TRUE(readout.contains("verdict"));
  }
  EXPECT_EQ(groups, (std::set<std::string>{"errors", "attack", "margin", "relearn", "distance",
                                           "bounds", "split", "adversary", "utility"}));
  const std::string text = content_of(path("audit.json"));
  std::istringstream ids(content_of(path("cohort.txt")));
  for (std::string id; std::getline(ids, id);) {
    EXPECT_EQ(text.find("\"" + id + "\""), std::string::npos) << id;
  }
  const CommandResult again = pumice(models("s.safetensors") + "--record " + path("audit.json"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.error.find("must not be overwritten without --force"), std::string::npos);
}

TEST_F(AuditCommandFull, WithoutReferencesItSaysWhatWouldBeNeeded) {
  const CommandResult result =
      pumice(models("s.safetensors") + "--only errors,bounds --explain --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.output.find("Overall: cannot tell."), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("No reference: most verdicts need two"), std::string::npos);
  EXPECT_NE(result.output.find("share that the model misclassifies"), std::string::npos);
}

TEST_F(AuditCommandFull, ReferencesAndShadowsAreTrainedOnDemand) {
  const CommandResult result =
      pumice(models("s.safetensors") + "--init " + path("w.start.safetensors") +
             " --reference retrain --references 2 --shadows 3 --only errors,shadows --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json record = json::parse(result.output);
  EXPECT_EQ(record.at("references").size(), 2);
  // The first is trained with the original's seed: the same as training without the cohort by hand.
  const Checkpoint by_hand = open_checkpoint(path("r1.safetensors"));
  EXPECT_EQ(record.at("references").front(), digest(*by_hand.model, by_hand.weights));
  std::set<std::string> ids;
  for (const json& readout : record.at("readouts")) ids.insert(readout.at("id"));
  for (const char* id : {"shadow_auc", "shadow_chance", "shadow_released_ratio", "klom_cohort"}) {
    EXPECT_TRUE(ids.contains(id)) << id;
  }
}

TEST_F(AuditCommandFull, TorchScriptModelsAreAuditedAlike) {
  const std::string reference =
      std::string(PUMICE_PYTHON) + " " PUMICE_SOURCE_DIR "/tests/fixtures/reference_networks.py ";
  ASSERT_EQ(run_command(reference + "torchscript trace " + path("foreign.pt")).exit_code, 0);
  const std::string data = "--classes 0-2 --per-class 6 --image-size 8 ";
  ok(pumice("train --init " + path("foreign.pt") + " --head keep " + data +
            "--test-per-class 5 --epochs 5 --rate 0.05 --weight-decay 0.05 --no-early-stop --quiet "
            "--out " +
            path("f.pt")));
  ok(pumice("data make cohort " + data + "--forget-class 1 --forget-count 2 --out " +
            path("fc.txt")));
  const CommandResult result =
      pumice("audit --model " + path("f.pt") + " --original " + path("f.pt") + " --init " +
             path("f.start.pt") + " --reference retrain --references 2 --cohort " + path("fc.txt") +
             " --noise 1e-6 --relearn-epochs 2 --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json record = json::parse(result.output);
  for (const json& readout : record.at("readouts")) {
    // The original handed in as scrubbed: every number is the original's own.
    EXPECT_EQ(readout.at("value"), readout.at("original")) << readout;
  }
}

TEST_F(AuditCommandFull, ModelsThatDoNotFitAreRefused) {
  const CommandResult other = pumice(models("s.safetensors") + "--reference " + body);
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.error.find("must have the names and shapes of the model"), std::string::npos)
      << other.error;
  const CommandResult few = pumice(models("s.safetensors") + "--test-per-class 0");
  EXPECT_EQ(few.exit_code, 1) << few.output;
  EXPECT_NE(few.error.find("test"), std::string::npos) << few.error;
}

}  // namespace
}  // namespace pumice
