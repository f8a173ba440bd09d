#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "pumice/model/checkpoint.h"
#include "temporary_folder.h"
#include "tool.h"
#include "tool_processes.h"

namespace pumice {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::CommandResult;
using testing::content_of;
using testing::pumice;
using testing::TemporaryFolder;
using testing::ToolProcesses;
using Words = std::vector<std::string>;

class ForgetProcessesFull : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const std::string data = " --classes 0-2 --per-class 30 ";
    const CommandResult trained =
        pumice("train --architecture mlp --preset finetune" + data +
               "--test-per-class 5 --epochs 8 --batch 15 --rate 0.01 --weight-decay 0.02 "
               "--no-early-stop --quiet --out " +
               path("w.safetensors"));
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    const CommandResult drawn = pumice("data make cohort" + data +
                                       "--forget-class 0 --forget-count 5 --out " + path("c.txt"));
    ASSERT_EQ(drawn.exit_code, 0) << drawn.error;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static Words request(const std::string& out, const Words& more = {}) {
    Words words{"forget",
                "--model",
                path("w.safetensors"),
                "--init",
                path("w.start.safetensors"),
                "--cohort",
                path("c.txt"),
                "--quiet",
                "--out",
                path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static CommandResult alone(const Words& words) {
    std::string line;
    for (const std::string& word : words) line += word + " ";
    return pumice(line);
  }
  static at::Tensor shift(const std::string& name) {
    return open_checkpoint(path(name)).weights.flat.to(at::kDouble) -
           open_checkpoint(path("w.safetensors")).weights.flat.to(at::kDouble);
  }
  static double distance(const std::string& left, const std::string& right) {
    return ((shift(left) - shift(right)).norm() / shift(right).norm()).item<double>();
  }
  // Files that begin like that, hidden ones too.
  static int traces_of(const std::string& name) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path())) {
      count += entry.path().filename().string().find(name) != std::string::npos;
    }
    return count;
  }
  static void wait_for(const std::string& name, const ToolProcesses& processes) {
    while (!std::filesystem::exists(path(name)) && processes.running(0)) {
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_TRUE(std::filesystem::exists(path(name)));
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* ForgetProcessesFull::folder_ = nullptr;

// Many steps, each of them kept. A ridge that keeps what float32 rounds below a hundred-thousandth.
const Words slow{"--solver", "matrix-free", "--curvature",        "softmax", "--tolerance", "1e-5",
                 "--ridge",  "0.1",         "--checkpoint-every", "0"};

TEST_F(ForgetProcessesFull, FourProcessesGiveTheShiftOfOne) {
  // Differences grow with the conditioning: on one processor the identity with a ridge of 1 gave
  // 1.02e-5, with 3 4.6e-6, the softmax curvature with 0.1 2.2e-6.
  const Words flat{"--solver", "dense", "--ridge", "3"};
  const Words curved{"--solver", "dense", "--ridge", "0.1", "--curvature", "softmax"};
  for (const Words& solver : {flat, curved, slow}) {
    const std::string name = solver[1] + std::to_string(solver.size());
    const std::string one = "one-" + name + ".safetensors", four = "four-" + name + ".safetensors";
    ASSERT_EQ(alone(request(one, solver)).exit_code, 0);
    Words words = request(four, solver);
    words.insert(words.end(), {"--record", path(name + ".json")});
    ToolProcesses processes(4, words);
    const CommandResult first = processes.result(0);
    EXPECT_EQ(first.exit_code, 0) << first.error;
    EXPECT_NE(first.output.find("Written: "), std::string::npos);
    for (const int rank : {1, 2, 3}) {
      const CommandResult other = processes.result(rank);
      EXPECT_EQ(other.exit_code, 0) << other.error;
      EXPECT_EQ(other.output + other.error, "");
    }
    EXPECT_LT(distance(four, one), 1e-5) << name;
    EXPECT_EQ(json::parse(content_of(path(name + ".json")))["processes"], 4);
    EXPECT_EQ(traces_of(four), 1);  // no checkpoint is left
  }
}

TEST_F(ForgetProcessesFull, AfterAKilledProcessAllEndAndARestartGoesOn) {
  ASSERT_EQ(alone(request("whole.safetensors", slow)).exit_code, 0);
  Words words = request("killed.safetensors", slow);
  words.insert(words.end(), {"--heartbeat-limit", "3", "--record", path("killed.json")});
  {
    ToolProcesses processes(4, words);
    wait_for("killed.safetensors.checkpoint", processes);
    processes.signal(2, SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    for (const int rank : {0, 1, 3}) {
      const CommandResult result = processes.result(rank);
      EXPECT_EQ(result.exit_code, 1) << result.output;
      EXPECT_NE(result.error.find("rank 2 is lost"), std::string::npos) << result.error;
      EXPECT_NE(result.error.find("start all processes again"), std::string::npos);
      EXPECT_EQ(result.error.find("the same command goes on from ") != std::string::npos, rank == 0)
          << result.error;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - killed, 60s);
  }
  EXPECT_EQ(traces_of("killed"), 1);  // the checkpoint, and nothing half-written
  ASSERT_TRUE(std::filesystem::exists(path("killed.safetensors.checkpoint")));

  const std::string cohort = content_of(path("c.txt"));
  std::ofstream(path("other.txt")) << cohort.substr(cohort.find('\n') + 1);
  Words another = request("x.safetensors", slow);
  std::replace(another.begin(), another.end(), path("c.txt"), path("other.txt"));
  another.insert(another.end(), {"--checkpoint", path("killed.safetensors.checkpoint")});
  const CommandResult refused = alone(another);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.error.find("is the checkpoint of another request"), std::string::npos)
      << refused.error;

  ToolProcesses again(4, words);
  const CommandResult first = again.result(0);
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_NE(first.output.find("Went on from "), std::string::npos) << first.output;
  EXPECT_LT(distance("killed.safetensors", "whole.safetensors"), 1e-5);
  EXPECT_EQ(traces_of("killed"), 3);  // model, record and its key
}

TEST_F(ForgetProcessesFull, WithoutRankZeroAllEndWithinAMinuteAndFewerProcessesGoOn) {
  ASSERT_EQ(alone(request("all.safetensors", slow)).exit_code, 0);
  const Words words = request("zero.safetensors", slow);  // with the limits of the tool
  {
    ToolProcesses processes(3, words);
    wait_for("zero.safetensors.checkpoint", processes);
    processes.signal(0, SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    for (const int rank : {1, 2}) {
      const CommandResult result = processes.result(rank);
      EXPECT_EQ(result.exit_code, 1) << result.output;
      EXPECT_NE(result.error.find("rank 0 is lost"), std::string::npos) << result.error;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - killed, 60s);
  }
  EXPECT_FALSE(std::filesystem::exists(path("zero.safetensors")));
  ToolProcesses again(2, words);
  const CommandResult first = again.result(0);
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_NE(first.output.find("Went on from "), std::string::npos) << first.output;
  EXPECT_LT(distance("zero.safetensors", "all.safetensors"), 1e-5);
  EXPECT_EQ(traces_of("zero"), 1);  // what rank 0 was writing is gone, too
}

// What launchers set is known from running them only.
TEST_F(ForgetProcessesFull, TorchrunAndMpirunStartItAsDocumented) {
  ASSERT_EQ(alone(request("single.safetensors", slow)).exit_code, 0);
  const auto port = [] { return std::to_string(testing::free_port()); };
  // Debian's torchrun 1.13 stumbles over its own default of --redirects and --tee with Python 3.11.
  const std::string torchrun = "/usr/bin/torchrun --redirects 1 --tee 2 --log_dir " + path("logs") +
                               " --nnodes 1 --nproc_per_node 2 ";
  const std::map<std::string, std::string> launchers{
      {"static", torchrun + "--master_port " + port() + " --no_python"},
      {"rendezvous",
       torchrun + "--rdzv_backend c10d --rdzv_endpoint 127.0.0.1:" + port() + " --no_python"},
      {"mpirun",
       "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "
       "-np 2"}};
  for (const auto& [name, launcher] : launchers) {
    std::string line = launcher + " " PUMICE_TOOL;
    for (const std::string& word : request(name + ".safetensors", slow)) line += " " + word;
    const CommandResult result = testing::run_command(line + " --record " + path(name + ".json"));
    ASSERT_EQ(result.exit_code, 0) << name << result.error << result.output;
    EXPECT_LT(distance(name + ".safetensors", "single.safetensors"), 1e-5) << name;
    EXPECT_EQ(json::parse(content_of(path(name + ".json")))["processes"], 2) << name;
  }
}

TEST_F(ForgetProcessesFull, AStoppedProcessIsLostToo) {
  Words words = request("stopped.safetensors", slow);
  words.insert(words.end(), {"--heartbeat-limit", "1.5"});
  for (const int lost : {1, 0}) {
    ToolProcesses processes(3, words);
    wait_for("stopped.safetensors.checkpoint", processes);
    processes.signal(lost, SIGSTOP);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == lost) continue;
      const CommandResult result = processes.result(rank);
      EXPECT_EQ(result.exit_code, 1) << result.output;
      EXPECT_NE(result.error.find("process of rank " + std::to_string(lost) + " is lost"),
                std::string::npos)
          << result.error;
    }
    EXPECT_FALSE(std::filesystem::exists(path("stopped.safetensors")));
    std::filesystem::remove(path("stopped.safetensors.checkpoint"));
  }
}

TEST_F(ForgetProcessesFull, DifferentRequestsAndFailuresAreToldToAll) {
  {
    ToolProcesses processes(2, request("y.safetensors", {"--heartbeat-limit", "1"}), 1,
                            {"--ridge", "0.3"});
    for (const int rank : {0, 1}) {
      const CommandResult result = processes.result(rank);
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_NE(result.error.find("options: rank 1 has blake2b:"), std::string::npos)
          << result.error;
    }
  }
  ToolProcesses processes(2, request("y.safetensors", {"--heartbeat-limit", "1"}), 1,
                          {"--reference", "/nowhere"});
  EXPECT_NE(processes.result(1).error.find("/nowhere"), std::string::npos);
  const CommandResult first = processes.result(0);
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_NE(first.error.find("process of rank 1 gave up: /nowhere"), std::string::npos)
      << first.error;
  EXPECT_EQ(traces_of("y.safetensors"), 0);
}

TEST_F(ForgetProcessesFull, HalfALaunchIsRefused) {
  const CommandResult result =
      testing::run_command("env RANK=1 " PUMICE_TOOL " forget --model " + path("w.safetensors") +
                           " --cohort " + path("c.txt") + " --out " + path("z.safetensors"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.error, "pumice: WORLD_SIZE: not set, must be with RANK = 1\n");
}

}  // namespace
}  // namespace pumice
