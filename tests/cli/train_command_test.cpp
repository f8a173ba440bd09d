#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "pumice/model/checkpoint.h"
#include "pumice/model/training_run.h"
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

// Two classes of real data and a narrow network: seconds, not minutes.
const std::string small_data =
    " --data fashion-mnist --classes 0,1 --per-class 60 --test-per-class 50 ";
const std::string small_network = " --architecture allcnn --width 0.1 ";

std::int64_t log_lines(const std::filesystem::path& path) {
  const std::string log = content_of(path);
  return std::count(log.begin(), log.end(), '\n');
}

TEST(TrainCommand, WrongUseGetsOneSentenceAndExitCodeTwo) {
  const CommandResult misspelt = pumice("train --out w.safetensors --clases 0-4");
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_NE(misspelt.error.find("unknown option '--clases', did you mean '--classes'?"),
            std::string::npos)
      << misspelt.error;
  const CommandResult rate = pumice("train --out w.safetensors --rate -1" + small_data);
  EXPECT_EQ(rate.exit_code, 2);
  EXPECT_EQ(rate.error, "pumice: --rate: -1, must be > 0\n");
  EXPECT_EQ(pumice("trian").exit_code, 2);
  EXPECT_NE(pumice("trian").error.find("did you mean 'train'?"), std::string::npos);
  EXPECT_EQ(pumice("train").exit_code, 2);
  // None of these may silently train on the cohort.
  EXPECT_EQ(pumice("train --out w.safetensors --forget-count 5" + small_data).exit_code, 2);
  EXPECT_EQ(pumice("train --out w.safetensors --exclude ''" + small_data).exit_code, 2);
  EXPECT_EQ(
      pumice("train --out w.safetensors --forget-class '' --forget-count 5" + small_data).exit_code,
      2);
  EXPECT_EQ(pumice("train --out w.safetensors --width 2 --init " + body).exit_code, 2);
  EXPECT_EQ(pumice("train --out w.safetensors --replace" + small_data).exit_code, 2);
  EXPECT_EQ(pumice("train --out w.pt" + small_network + small_data).exit_code, 2);
}

TEST(TrainCommand, BadFilesGetOneSentenceAndExitCodeOne) {
  const CommandResult missing =
      pumice("train --out /tmp/w.safetensors --init /no/such.safetensors");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.error,
            "pumice: /no/such.safetensors: cannot be read, No such file or directory\n");
}

TEST(TrainCommand, HelpAndVersionSayWhatTheyShould) {
  const CommandResult version = pumice("--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_NE(version.output.find("LibTorch"), std::string::npos);
  EXPECT_NE(version.output.find("revision"), std::string::npos);
  EXPECT_NE(pumice("train --help").output.find("Example:"), std::string::npos);
}

TEST(TrainCommandFull, FineTuningTheShippedBodyReachesZeroTrainingError) {
  const TemporaryFolder folder;
  const std::string out = (folder / "w.safetensors").string();
  const CommandResult result =
      pumice("train --init " + body +
             " --classes 0-4 --per-class 100 --test-per-class 100 --batch 32 --rate 0.003 "
             "--weight-decay 0.02 --epochs 100 --json --out " +
             out);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json summary = json::parse(result.output);
  EXPECT_EQ(summary["training"]["error"], 0.0);
  EXPECT_EQ(summary["training"]["examples"], 500);
  EXPECT_LT(summary["test"]["error"].get<double>(), 0.3);
  EXPECT_EQ(log_lines(folder / "w.log.jsonl"), summary["epochs"].get<std::int64_t>());

  const Checkpoint start = open_checkpoint(folder / "w.start.safetensors");
  const Checkpoint shipped = open_checkpoint(body);
  EXPECT_EQ(start.metadata.at("mean"), shipped.metadata.at("mean"))
      << "normalisation is the body's";
  EXPECT_TRUE(at::equal(start.weights.tensor("features.3.0.weight"),
                        shipped.weights.tensor("features.3.0.weight")));
  EXPECT_FALSE(at::equal(start.weights.tensor("classifier.weight"),
                         shipped.weights.tensor("classifier.weight")))
      << "the head is fresh";
  EXPECT_EQ(start.model->buffers()[0].second.equal(open_checkpoint(out).model->buffers()[0].second),
            true)
      << "batch-norm statistics are frozen";

  // The same training without 25 examples, from the start file alone.
  const std::string retrained = (folder / "r.safetensors").string();
  const CommandResult without =
      pumice("train --init " + (folder / "w.start.safetensors").string() +
             " --forget-class 0 --forget-count 25 --epochs 2 --json --out " + retrained);
  ASSERT_EQ(without.exit_code, 0) << without.error;
  const json reduced = json::parse(without.output);
  EXPECT_EQ(reduced["training"]["examples"], 475);
  EXPECT_EQ(reduced["excluded"]["examples"], 25);
  EXPECT_EQ(reduced["head"], "kept");
  json expected = summary["recipe"];
  expected["epochs"] = 2;
  EXPECT_EQ(reduced["recipe"], expected) << "the start's recipe, except for what was given again";
  EXPECT_EQ(open_checkpoint(retrained).metadata.at("data_digest"),
            open_checkpoint(out).metadata.at("data_digest"));
  EXPECT_EQ(digest(*start.model, start.weights), [&] {
    const Checkpoint again = open_checkpoint(folder / "r.start.safetensors");
    return digest(*again.model, again.weights);
  }());
}

TEST(TrainCommandFull, SameSeedSameBytes) {
  const TemporaryFolder folder;
  const std::string common =
      "train --epochs 2 --quiet --seed 5" + small_network + small_data + " --out ";
  ASSERT_EQ(pumice(common + (folder / "a.safetensors").string()).exit_code, 0);
  ASSERT_EQ(pumice(common + (folder / "b.safetensors").string()).exit_code, 0);
  EXPECT_EQ(content_of(folder / "a.safetensors"), content_of(folder / "b.safetensors"));
}

TEST(TrainCommandFull, KeepsEveryEpochIfAsked) {
  const TemporaryFolder folder;
  const std::filesystem::path out = folder / "w.safetensors";
  ASSERT_EQ(pumice("train --epochs 2 --keep-epochs --quiet" + small_network + small_data +
                   " --out " + out.string())
                .exit_code,
            0);
  EXPECT_TRUE(at::equal(open_checkpoint(epoch_path(out, 2)).weights.flat,
                        open_checkpoint(out).weights.flat));
  EXPECT_FALSE(at::equal(open_checkpoint(epoch_path(out, 1)).weights.flat,
                         open_checkpoint(out).weights.flat));
}

// Starts the tool, waits until the log has `epochs` lines, sends the signal, and returns the wait
// status.
int run_and_signal(const std::string& arguments, const std::filesystem::path& log,
                   std::int64_t epochs, int signal) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", ("exec " PUMICE_TOOL " " + arguments + " 2>/dev/null").c_str(),
            nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 6000 && log_lines(log) < epochs; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(TrainCommandFull, AKilledRunResumesToTheSameBytes) {
  const TemporaryFolder folder;
  const std::string common =
      "train --epochs 12 --preset pretrain --quiet" + small_network + small_data + " --out ";
  const std::filesystem::path whole = folder / "whole.safetensors";
  const std::filesystem::path killed = folder / "killed.safetensors";
  ASSERT_EQ(pumice(common + whole.string()).exit_code, 0);

  const int status = run_and_signal(common + killed.string(), log_path(killed), 3, SIGKILL);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it was to be killed before it could finish";
  ASSERT_TRUE(std::filesystem::exists(resume_path(killed)));
  ASSERT_FALSE(std::filesystem::exists(killed));
  const CommandResult refused = pumice(common + killed.string());
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.error.find("continue it with --resume"), std::string::npos) << refused.error;
  const CommandResult other = pumice(common + killed.string() + " --resume --rate 0.01");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.error.find("the interrupted run had another recipe"), std::string::npos)
      << other.error;

  // The second run is stopped by Ctrl-C, the third finishes.
  const int interrupted =
      run_and_signal(common + killed.string() + " --resume", log_path(killed), 6, SIGINT);
  ASSERT_TRUE(WIFEXITED(interrupted));
  EXPECT_EQ(WEXITSTATUS(interrupted), 1);
  const CommandResult resumed = pumice(common + killed.string() + " --resume --json");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
  EXPECT_GE(json::parse(resumed.output)["resumed_after"].get<int>(), 6);
  EXPECT_EQ(content_of(killed), content_of(whole));
  EXPECT_EQ(log_lines(log_path(killed)), 12);
  EXPECT_FALSE(std::filesystem::exists(resume_path(killed)));
}

TEST(TrainCommandFull, ARateThatIsTooHighStopsWithTheCauseAndNoResult) {
  const TemporaryFolder folder;
  const CommandResult result = pumice("train --rate 1e30 --quiet" + small_network + small_data +
                                      " --out " + (folder / "w.safetensors").string());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.error.find("the loss is not finite in epoch"), std::string::npos)
      << result.error;
  EXPECT_FALSE(std::filesystem::exists(folder / "w.safetensors"));
}

TEST(TrainCommandFull, ATorchScriptModelIsFineTunedAndSavedAsOne) {
  const TemporaryFolder folder;
  const std::string model = (folder / "model.pt").string();
  const CommandResult made = run_command(
      std::string(PUMICE_PYTHON) +
      " " PUMICE_SOURCE_DIR "/tests/fixtures/reference_networks.py torchscript trace " + model);
  ASSERT_EQ(made.exit_code, 0) << made.error;
  const std::string data =
      " --data fashion-mnist --classes 0-2 --per-class 30 --test-per-class 30 ";
  const CommandResult result = pumice("train --init " + model + data + "--epochs 2 --quiet --out " +
                                      (folder / "w.pt").string());
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Checkpoint trained = open_checkpoint(folder / "w.pt");
  EXPECT_FALSE(at::equal(trained.weights.flat, open_checkpoint(model).weights.flat));
  EXPECT_EQ(trained.metadata.at("epochs_run"), "2");
  const CommandResult classes =
      pumice("train --init " + model + " --classes 0-4 --per-class 10 --out " +
             (folder / "v.pt").string());
  EXPECT_EQ(classes.exit_code, 1);
  EXPECT_NE(classes.error.find("model: 3 outputs, but the data have 5 classes"), std::string::npos)
      << classes.error;
}

}  // namespace
}  // namespace pumice
