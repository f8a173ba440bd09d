// The tool on a tiny protocol: real pictures, a small MLP, a few epochs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "command.h"
#include "pumice/core/error.h"
#include "pumice/core/folder_lock.h"
#include "pumice/record/joined_experiments.h"
#include "pumice/record/record.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::content_of;
using testing::run_command;
using testing::TemporaryFolder;

const std::string tiny = R"(title = "tiny"
seeds = [1, 2]
[data]
source = "fashion-mnist"
classes = "0-2"
per_class = 20
test_per_class = 15
validation_per_class = 5
[model]
architecture = "mlp"
width = 0.25
[recipe]
epochs = 4
early_stop = false
batch = 16
rate = 0.02
weight_decay = 0.05
[cohort]
class = 0
count = 5
[noise]
scale = 1e-7
shape = "paper"
[[methods]]
name = "original"
[[methods]]
name = "finetune"
epochs = 2
[[methods]]
name = "consistent"
[[methods]]
name = "ntk"
noise = 0
[[methods]]
name = "retrain"
[readouts]
groups = ["errors", "attack", "relearn", "distance", "path", "bounds"]
path_steps = 2
[readouts.relearn]
epochs = 3
[figures]
tradeoff = [1e-7, 1e-6]
tradeoff_queries = 10
ablations = true
landscape = true
projection = true
)";

// One thread: where others use the cores, threads of tiny pieces of work mostly wait for each
// other.
std::string tool(const std::filesystem::path& protocol, const std::filesystem::path& out) {
  return text(PUMICE_TOOL " run ", protocol.string(), " --out ", out.string(),
              " --quiet --threads 1 ");
}

void write(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path) << content;
}

// All keys that tell of time, at any depth, are made equal.
json without_times(json value) {
  if (value.is_object()) {
    for (const char* key : {"seconds", "revision", "command", "shared_kernel"}) value.erase(key);
  }
  if (value.is_structured()) {
    for (json& part : value) part = without_times(part);
  }
  return value;
}

// The first place where two records differ; numbers may differ by rounding, since how a kernel is
// cut depends on the memory that is free and on measured speeds.
std::string difference(const json& one, const json& other, const std::string& place = "") {
  if (one.is_number() && other.is_number()) {
    const double a = one, b = other;
    return std::abs(a - b) <= 1e-4 * std::max({1e-6, std::abs(a), std::abs(b)})
               ? ""
               : text(place, ": ", a, " and ", b);
  }
  if (one.type() != other.type()) return place + ": another type";
  if (one.is_object() || one.is_array()) {
    if (one.size() != other.size()) return place + ": another size";
    for (const auto& [key, value] : one.items()) {
      if (one.is_object() && !other.contains(key)) return place + "/" + key + ": missing";
      const json& counterpart =
          one.is_object() ? other.at(key) : other.at(static_cast<std::size_t>(std::stoul(key)));
      const std::string found = difference(value, counterpart, place + "/" + key);
      if (!found.empty()) return found;
    }
    return "";
  }
  // Sentences hold rounded numbers.
  return one == other || place.ends_with("because") ? "" : text(place, ": ", one, " and ", other);
}

json record_in(const std::filesystem::path& folder) {
  return json::parse(content_of(folder / "record.json"));
}

TEST(RunCommandFull, KilledAtRandomMomentsItEndsWithTheSameRecord) {
  const TemporaryFolder folder;
  write(folder / "tiny.toml", tiny);
  write(folder / "key", std::string(64, 'a') + "\n");
  const std::string key = " --key " + (folder / "key").string();
  const auto begin = std::chrono::steady_clock::now();
  const CommandResult whole = run_command(tool(folder / "tiny.toml", folder / "whole") + key);
  const auto duration = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(whole.exit_code, 0) << whole.error;
  EXPECT_NE(whole.output.find("retrained models"), std::string::npos) << whole.output;
  EXPECT_NE(whole.output.find("The cohorts are still in:"), std::string::npos);

  std::mt19937 moments(std::random_device{}());
  int kills = 0;
  for (int attempt = 0; attempt < 60; ++attempt) {
    const std::string command = tool(folder / "tiny.toml", folder / "killed") + key;
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", ("exec " + command + " >/dev/null 2>&1").c_str(), nullptr);
      ::_exit(127);
    }
    // Between a fifth and a half of what the whole takes, so that the first does not come to its
    // end. Later attempts get more time, so that a slow machine does.
    const auto deadline = std::chrono::steady_clock::now() +
                          duration * (20 + static_cast<int>(moments() % 30)) / 100 +
                          std::chrono::milliseconds(50 * attempt);
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
        ++kills;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
  }
  EXPECT_GE(kills, 1);
  ASSERT_TRUE(std::filesystem::exists(folder / "killed" / "record.json"));
  EXPECT_EQ(difference(without_times(record_in(folder / "whole")),
                       without_times(record_in(folder / "killed"))),
            "");

  // Once more: nothing is repeated.
  const std::string before = content_of(folder / "killed" / "record.json");
  const CommandResult again = run_command(tool(folder / "tiny.toml", folder / "killed") + key);
  EXPECT_EQ(again.exit_code, 0);
  const json listing = json::parse(
      run_command(tool(folder / "tiny.toml", folder / "killed") + "--dry-run --json").output);
  EXPECT_NE(again.output.find(text(listing.at("steps").size(), " steps, ",
                                   listing.at("steps").size(), " of them done before")),
            std::string::npos)
      << again.output;
  EXPECT_EQ(content_of(folder / "killed" / "record.json"), before);
}

TEST(RunCommandFull, TheRecordHoldsWhatThePageSays) {
  const TemporaryFolder folder;
  write(folder / "tiny.toml", tiny);
  const CommandResult result = run_command(tool(folder / "tiny.toml", folder / "out"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Record record = read_record(folder / "out" / "record.json");
  EXPECT_EQ(record.kind, "experiment");
  const json& content = record.content;
  EXPECT_EQ(content.at("protocol"), tiny);
  EXPECT_EQ(content.at("data").at("train"), 60);
  EXPECT_EQ(content.at("request").at("cohort_class"), "T-shirt/top");
  ASSERT_EQ(content.at("runs").size(), 2U);
  const json& run = content.at("runs").at(0);
  EXPECT_EQ(run.at("training").at("references").size(), 2U);
  EXPECT_EQ(run.at("training").at("original").at("epochs"), 4);
  for (const char* method : {"original", "finetune", "consistent", "ntk", "retrain"}) {
    const json& one = run.at("methods").at(method);
    EXPECT_EQ(one.at("audit").at("subject"), method);
    EXPECT_EQ(one.at("summary").at("method"), method);
    EXPECT_EQ(one.at("tradeoff").size(), 2U);
    EXPECT_EQ(one.at("summary").at("reference").at("count"), 2);
  }
  // More noise, less information.
  const json& tradeoff = run.at("methods").at("consistent").at("tradeoff");
  EXPECT_GT(tradeoff.at(0).at("white_box").get<double>(),
            tradeoff.at(1).at("white_box").get<double>());
  EXPECT_EQ(run.at("ablations").size(), 8U);
  EXPECT_EQ(run.at("landscape").at("surface").at("loss").size(), 17U);
  EXPECT_EQ(run.at("projection").at("paths").at("D").size(), 5U);  // the start and four epochs
  EXPECT_TRUE(run.at("projection").at("clouds").contains("consistent"));
  EXPECT_FALSE(run.at("projection").at("clouds").contains("ntk"));  // it has no noise
  EXPECT_FALSE(content.at("runs").at(1).contains("landscape"));     // one run is drawn
  // Its seeds run apart, joined, are the whole.
  std::optional<Record> together;
  for (const char* seed : {"2", "1"}) {
    const CommandResult apart =
        run_command(tool(folder / "tiny.toml", folder / "out") + " --seeds " + seed);
    ASSERT_EQ(apart.exit_code, 0) << apart.error;
    const Record one = read_record(folder / "out" / "record.json");
    EXPECT_EQ(one.content.at("runs").size(), 1U);
    together = together ? joined(*together, one) : one;
  }
  ASSERT_TRUE(together);
  EXPECT_EQ(difference(together->content.at("runs"), content.at("runs")), "");
  const CommandResult unknown =
      run_command(tool(folder / "tiny.toml", folder / "out") + " --seeds 7");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.error, text("pumice: ", (folder / "tiny.toml").string(),
                                ": has no seed 7, must be of its seeds 1, 2\n"));
  // No id of a cohort anywhere.
  EXPECT_EQ(content.dump().find("train/0"), std::string::npos);
}

TEST(RunCommand, ADryRunListsTheStepsAndWritesNothing) {
  const TemporaryFolder folder;
  write(folder / "tiny.toml", tiny);
  const CommandResult result =
      run_command(tool(folder / "tiny.toml", folder / "out") + " --dry-run");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.output.find("seed 1: train on all examples"), std::string::npos);
  EXPECT_NE(result.output.find("seed 2: audit consistent"), std::string::npos);
  EXPECT_NE(result.output.find("A forecast"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(RunCommand, TwoRunsInOneFolderAreRefused) {
  const TemporaryFolder folder;
  write(folder / "tiny.toml", tiny);
  std::filesystem::create_directories(folder / "out");
  const FolderLock lock(folder / "out");
  const CommandResult result = run_command(tool(folder / "tiny.toml", folder / "out"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.error, text("pumice: ", (folder / "out").string(),
                               ": another run is at work in this folder (process ", ::getpid(),
                               "), must end first\n"));
}

TEST(RunCommand, MissingDataAreToldBeforeAnyWorkWithTheWayToGetThem) {
  const TemporaryFolder folder;
  const std::string cache = "XDG_CACHE_HOME=" + folder.path().string() + " ";
  const auto sentence = [&](const std::string& protocol) {
    const CommandResult result =
        run_command("cd " + folder.path().string() + " && " + cache +
                    tool(PUMICE_SOURCE_DIR "/protocols/" + protocol, folder / "out"));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    return result.error;
  };
  const std::string protocols = PUMICE_SOURCE_DIR "/protocols/";
  EXPECT_EQ(sentence("resnet18-cifar10.toml"),
            "pumice: " + protocols +
                "resnet18-cifar10.toml: data 'cifar10' cannot be used, data: 'cifar10' is not "
                "here; run 'pumice data get cifar10'\n");
  EXPECT_EQ(sentence("allcnn-tiny-imagenet.toml"),
            "pumice: " + protocols +
                "allcnn-tiny-imagenet.toml: data 'tiny-imagenet' cannot be used, data: "
                "'tiny-imagenet' is not here; run 'pumice data get tiny-imagenet'\n");
  EXPECT_EQ(sentence("resnet18-lacuna10.toml"),
            "pumice: " + protocols +
                "resnet18-lacuna10.toml: data 'lacuna:lacuna-100' cannot be used, lacuna-100: no "
                "such folder; 'pumice data make lacuna --from DIR --out .' makes it from a "
                "collection of faces (docs/data.md)\n");
}

TEST(RunCommand, AMissingBodyIsTold) {
  const TemporaryFolder folder;
  std::string protocol = tiny;
  const std::string own = "architecture = \"mlp\"\nwidth = 0.25";
  protocol.replace(protocol.find(own), own.size(), "body = \"none.safetensors\"");
  write(folder / "tiny.toml", protocol);
  const CommandResult result = run_command(tool(folder / "tiny.toml", folder / "out"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.error, text("pumice: ", (folder / "tiny.toml").string(),
                               ": body cannot be used, ", (folder / "none.safetensors").string(),
                               ": cannot be read, No such file or directory; 'pumice train' makes "
                               "one\n"));
}

}  // namespace
}  // namespace pumice
