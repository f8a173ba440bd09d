#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "npy.h"
#include "pumice/data/split.h"
#include "temporary_folder.h"
#include "tool.h"

namespace pumice {
namespace {

using nlohmann::json;
using testing::body;
using testing::CommandResult;
using testing::content_of;
using testing::load_npy;
using testing::pumice;
using testing::run_command;
using testing::TemporaryFolder;

TEST(KernelCommand, WrongUseGetsOneSentenceAndExitCodeTwo) {
  const auto expect = [](const std::string& arguments, const std::string& sentence) {
    const CommandResult result = pumice("kernel --model " + body + " " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << result.error;
    EXPECT_NE(result.error.find(sentence), std::string::npos) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  };
  expect("", "there is nothing to do");
  expect("--out theta.csv", "must end in .npy");
  expect("--spectrum --against-part test", "needs a square kernel");
  expect("--out theta.npy --ridge 1", "means nothing without --spectrum");
  expect("--spectrum --ridge 0", "must be > 0");
  expect("--spectrum --memory lots", "must be a number of bytes");
  expect("--spectrum --contraction hadamart", "did you mean 'hadamard'?");
}

class KernelCommandFull : public ::testing::Test {
 protected:
  // Trained for one epoch only: kernels do not mind.
  void SetUp() override {
    const CommandResult trained = pumice(
        "train --init " + body +
        " --classes 0-2 --per-class 8 --test-per-class 4 --epochs 1 --quiet --weight-decay 0.1 "
        "--out " +
        model());
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
  }
  std::string model() const { return (folder_ / "w.safetensors").string(); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(KernelCommandFull, TheFileIsReadByNumpyAndRowsAreExampleTimesClassesPlusClass) {
  const CommandResult result =
      pumice("kernel --model " + model() + " --quiet --layers --out " + path("theta.npy"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.output.find("kernel 72×72"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("features.0.0.weight"), std::string::npos) << result.output;
  const CommandResult numpy = run_command(
      std::string(PUMICE_PYTHON) + " -c \"import numpy; t = numpy.load('" + path("theta.npy") +
      "'); print(t.dtype, t.shape, abs(t - t.T).max(), numpy.linalg.eigvalsh(t).min() > -1e-6)\"");
  EXPECT_EQ(numpy.output, "float64 (72, 72) 0.0 True\n") << numpy.error;

  // The kernel of a few of the examples, in another order, is that part of the whole.
  const json about = json::parse(content_of(path("theta.json")));
  EXPECT_EQ(about["classes"], 3);
  const std::vector<std::string> ids = about["row_ids"];
  ASSERT_EQ(ids.size(), 24);
  write_ids(path("ids.txt"), {ids[20], ids[3]});
  ASSERT_EQ(pumice("kernel --model " + model() + " --quiet --ids " + path("ids.txt") + " --out " +
                   path("few.npy"))
                .exit_code,
            0);
  const at::Tensor theta = load_npy(path("theta.npy"));
  const at::Tensor rows = at::cat({at::arange(60, 63), at::arange(9, 12)});
  EXPECT_TRUE(at::allclose(load_npy(path("few.npy")),
                           theta.index_select(0, rows).index_select(1, rows), 1e-4, 1e-4));
}

TEST_F(KernelCommandFull, ColumnsCanBeOtherExamplesAndBudgetsAndContractionsDoNotChangeThem) {
  const std::string common = "kernel --model " + model() + " --quiet --against-part test --out ";
  ASSERT_EQ(pumice(common + path("a.npy")).exit_code, 0);
  ASSERT_EQ(pumice(common + path("b.npy") + " --memory 90M --threads 1").exit_code, 0);
  ASSERT_EQ(pumice(common + path("c.npy") + " --contraction hadamard").exit_code, 0);
  const at::Tensor theta = load_npy(path("a.npy"));
  EXPECT_EQ(theta.sizes(), at::IntArrayRef({72, 36}));
  EXPECT_TRUE(at::allclose(load_npy(path("b.npy")), theta, 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(load_npy(path("c.npy")), theta, 1e-4, 1e-4));
  const json about = json::parse(content_of(path("a.json")));
  EXPECT_EQ(about["row_ids"].size(), 24);
  EXPECT_EQ(about["column_ids"].size(), 12);
  EXPECT_EQ(about["column_ids"][0].get<std::string>().substr(0, 5), "test/");
}

TEST_F(KernelCommandFull, TheSpectrumUsesTheRidgeOfTheTraining) {
  const CommandResult result =
      pumice("kernel --model " + model() + " --spectrum --leading 3 --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json spectrum = json::parse(result.output)["spectrum"];
  EXPECT_EQ(spectrum["leading_eigenvalues"].size(), 3);
  EXPECT_NEAR(spectrum["effective_dimensions"][0]["ridge"].get<double>(), 24 * 0.1, 1e-9);
  const double dimension = spectrum["effective_dimensions"][0]["effective_dimension"];
  EXPECT_GT(dimension, 3);
  EXPECT_LT(dimension, 72);
  const CommandResult words =
      pumice("kernel --model " + model() + " --quiet --spectrum --ridge 1 --ridge 10");
  EXPECT_NE(words.output.find("for ridge 10:"), std::string::npos) << words.output;
}

TEST_F(KernelCommandFull, ErrorsLeaveNoFileAndNothingIsOverwrittenUnasked) {
  const std::string out = " --quiet --out " + path("theta.npy");
  write_ids(path("ids.txt"), {"train/nobody"});
  const CommandResult unknown =
      pumice("kernel --model " + model() + out + " --ids " + path("ids.txt"));
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.error.find("'train/nobody' is not among the 24"), std::string::npos);
  const CommandResult tight = pumice("kernel --model " + model() + out + " --memory 100K");
  EXPECT_EQ(tight.exit_code, 1);
  EXPECT_NE(tight.error.find("needs at least"), std::string::npos) << tight.error;
  EXPECT_FALSE(std::filesystem::exists(path("theta.npy")));
  ASSERT_EQ(pumice("kernel --model " + model() + out).exit_code, 0);
  const CommandResult again = pumice("kernel --model " + model() + out);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.error.find("without --force"), std::string::npos) << again.error;
}

TEST_F(KernelCommandFull, CtrlCLeavesNothingHalfWritten) {
  const std::string out = path("large.npy");
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c",
            ("exec " PUMICE_TOOL " kernel --model " + model() + " --per-class 400 --out " + out +
             " 2>" + path("said.txt"))
                .c_str(),
            nullptr);
    ::_exit(127);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(content_of(path("said.txt")).find("interrupted, nothing was written"),
            std::string::npos)
      << content_of(path("said.txt"));
  for (const auto& entry : std::filesystem::directory_iterator(path(""))) {
    EXPECT_EQ(entry.path().string().find("large"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace pumice
