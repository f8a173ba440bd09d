#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/made_files.h"
#include "pumice/data/data_request.h"
#include "pumice/data/image_file.h"
#include "pumice/data/split.h"
#include "pumice/model/checkpoint.h"
#include "small_data.h"
#include "temporary_folder.h"
#include "tool.h"

namespace pumice {
namespace {

using nlohmann::json;
using testing::blob_dataset;
using testing::CommandResult;
using testing::content_of;
using testing::pumice;
using testing::TemporaryFolder;
namespace files = std::filesystem;

TEST(IndexCommand, WrongUseGetsOneSentenceAndExitCodeTwo) {
  const auto expect = [](const std::string& arguments, const std::string& sentence) {
    const CommandResult result = pumice(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << result.error;
    EXPECT_NE(result.error.find(sentence), std::string::npos) << result.error;
  };
  expect("index build --model w --out i --scale 0", "--scale: 0, must be > 0");
  expect("forget --index i --cohort c --out o --ridge 1", "--ridge: means nothing with --index");
  expect("forget --cohort c --out o", "--model: not given, must be (or --index)");
}

// A folder of pictures of which a part is selected, and a small network trained on it.
class IndexCommandFull : public ::testing::Test {
 protected:
  IndexCommandFull() {
    const Dataset blobs = blob_dataset(10);
    for (std::int64_t i = 0; i < blobs.size(); ++i) {
      const auto label = blobs.labels[i].item<std::int64_t>();
      const files::path file =
          folder_ / ("data/c" + std::to_string(label) + "/p" + std::to_string(i) + ".png");
      files::create_directories(file.parent_path());
      write_png(file, blobs.images[i]);
    }
    run("train --architecture mlp --width 0.25 --preset finetune --data folder:" + path("data") +
        " --image-size 8 --channels 1 --per-class 8 --epochs 15 --weight-decay 0.05 "
        "--no-early-stop --quiet --out " +
        path("w.safetensors"));
    const Checkpoint model = open_checkpoint(path("w.safetensors"));
    ids_ = load(*stored_data_request(model.metadata)).train.ids;
    run("index build --quiet --model " + path("w.safetensors") + " --init " +
        path("w.start.safetensors") + " --out " + path("i"));
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  json run(const std::string& arguments) const {
    const CommandResult result = pumice(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
    return json::parse(result.output, nullptr, false);
  }
  std::string cohort(const std::string& name, const std::vector<std::size_t>& positions) const {
    std::vector<std::string> chosen;
    for (const std::size_t position : positions) chosen.push_back(ids_[position]);
    write_ids(path(name), chosen);
    return " --cohort " + path(name);
  }

  TemporaryFolder folder_;
  std::vector<std::string> ids_;
};

TEST_F(IndexCommandFull, RequestsAuditsAndARefreshFollowEachOtherAndTheForgottenMayBeDeleted) {
  const std::string noise = " --noise 1e-6 --noise-shape paper --json";
  const std::string request = "forget --index " + path("i") + noise;
  const std::string first = cohort("c1.txt", {0});
  const std::string sensitive = "holds the weights before deletion";
  EXPECT_NE(pumice("index show " + path("i")).output.find(sensitive), std::string::npos);
  EXPECT_EQ(files::status(path("i")).permissions(), files::perms::owner_all);
  const json record =
      run(request + first + " --out " + path("r1.safetensors") + " --distribution " +
          path("d1.safetensors") + " --record " + path("f1.json"));
  EXPECT_EQ(record["cohort_size"], 1);
  EXPECT_EQ(record["methods"][0]["errors"]["cohort"]["examples"], 1);
  EXPECT_EQ(record["index"]["retained"], 23);
  EXPECT_EQ(content_of(path("f1.json")).find(ids_[0]), std::string::npos);
  run("audit --model " + path("r1.safetensors") + " --original " + path("w.safetensors") +
      " --init " + path("w.start.safetensors") +
      " --reference retrain --references 2 --only bounds --test folder:" + path("data") + first +
      noise + " --distribution " + path("d1.safetensors") + " --record " + path("a1.json"));
  const json bounds = run("index bound " + path("i") + " --audit " + path("a1.json") + " --json");
  EXPECT_GT(bounds["white_box"]["nats"].get<double>(), 0);

  // With its picture gone the selection would draw others; the index finds its own.
  files::remove(folder_ / "data" / ids_[0]);
  const json second = run(request + cohort("c2.txt", {9, 17}) + " --out " + path("r2.safetensors"));
  EXPECT_EQ(second["index"]["retained"], 21);
  const CommandResult refreshed =
      pumice("index refresh " + path("i") + " --quiet --model " + path("r2.safetensors"));
  EXPECT_EQ(refreshed.exit_code, 0) << refreshed.error;
  EXPECT_NE(refreshed.output.find("The old point is wiped"), std::string::npos);
  EXPECT_NE(refreshed.output.find("holds the weights of the last release"), std::string::npos);
  EXPECT_EQ(refreshed.output.find(sensitive), std::string::npos);

  const json shown = run("index show " + path("i") + " --json");
  EXPECT_EQ(shown["examples"], 21);
  EXPECT_EQ(shown["share_since_point"], 0);
  EXPECT_EQ(shown["ledger"].size(), 5U);
  EXPECT_EQ(shown["bounds"]["white_box"]["reason"], "release 2 was not audited");
  const json verified = run("index verify " + path("i") + " --json --cohort " + path("c2.txt") +
                            " --head " + shown["ledger"][1]["digest"].get<std::string>());
  EXPECT_EQ(verified["request"], 2);
}

TEST_F(IndexCommandFull, WhatDoesNotFitIsRefusedAndNothingChanges) {
  const auto state = [&] {
    return content_of(path("i/index.safetensors")) + content_of(path("i/ledger.jsonl"));
  };
  const std::string before = state();
  const auto expect = [&](int code, const std::string& arguments, const std::string& sentence) {
    const CommandResult result = pumice(arguments + " --out " + path("no.safetensors"));
    EXPECT_EQ(result.exit_code, code) << arguments << result.error;
    EXPECT_NE(result.error.find(sentence), std::string::npos) << result.error;
    EXPECT_FALSE(files::exists(path("no.safetensors")));
    EXPECT_EQ(state() == before, true);
  };
  const std::string request = "forget --index " + path("i");
  expect(1, request + cohort("c.txt", {1}) + " --model " + path("w.start.safetensors"),
         "is not the model of this index");
  write_ids(path("u.txt"), {"c0/nobody.png"});
  expect(1, request + " --cohort " + path("u.txt"), "'c0/nobody.png'");
  expect(1, request + cohort("e.txt", {3}) + " --init " + path("w.safetensors"),
         "is not the start of this index");
  const CommandResult shared = testing::run_command(
      "env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 " PUMICE_TOOL " " + request + " --cohort " +
      path("e.txt") + " --out " + path("no.safetensors"));
  EXPECT_EQ(shared.exit_code, 1);
  EXPECT_NE(shared.error.find("is answered by one process"), std::string::npos) << shared.error;
  // A limit of the shell on files stands for a full disk.
  const CommandResult full =
      testing::run_command("trap '' XFSZ; ulimit -f 12; " PUMICE_TOOL " " + request + " --cohort " +
                           path("e.txt") + " --quiet --out " + path("no.safetensors"));
  EXPECT_EQ(full.exit_code, 1) << full.error;
  EXPECT_NE(full.error.find("cannot be written"), std::string::npos) << full.error;
  EXPECT_FALSE(files::exists(path("no.safetensors")));
  EXPECT_EQ(state() == before, true);
  // Without anybody to ignore the signal it is killed in the middle of writing; the next one takes
  // it back.
  const CommandResult killed =
      testing::run_command("ulimit -c 0; ulimit -f 12; " PUMICE_TOOL " " + request +
                           cohort("d.txt", {2}) + " --quiet --out " + path("no.safetensors"));
  EXPECT_NE(killed.exit_code, 0);
  EXPECT_EQ(state() == before, true);
  const CommandResult verified = pumice("index verify " + path("i"));
  EXPECT_EQ(verified.exit_code, 0) << verified.error;
  EXPECT_NE(verified.output.find("interrupted was taken back"), std::string::npos);
  EXPECT_EQ(state() == before, true);
}

}  // namespace
}  // namespace pumice
