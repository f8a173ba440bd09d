#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "npy.h"
#include "pumice/data/split.h"
#include "pumice/model/checkpoint.h"
#include "pumice/model/training.h"
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

TEST(ForgetCommand, WrongUseGetsOneSentenceAndExitCodeTwo) {
  const auto expect = [](const std::string& arguments, const std::string& sentence) {
    const CommandResult result =
        pumice("forget --model " + body + " --cohort c.txt --out x.safetensors " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << result.error;
    EXPECT_NE(result.error.find(sentence), std::string::npos) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  };
  expect("--method consitent", "did you mean 'consistent'?");
  expect("--method fisher", "--noise: not given, method 'fisher' is noise alone");
  expect("--method retrain", "--init: not given, method 'retrain' trains from it");
  expect("--method ntk --method ntk", "--method: one is named twice");
  expect("--noise -1", "--noise: -1, must be >= 0");
  expect("--ridge 0", "--ridge: 0, must be > 0");
  expect("--scale -2", "--scale: -2, must be > 0");
  expect("--init w0 --decay-centre zero", "--decay-centre: means nothing with --init");
  expect("--scale 2 --validation train", "--validation: means nothing with --scale");
  expect("--key k", "--key: means nothing without --record");
  expect("--memory lots", "must be a number of bytes");
  expect("--max-iterations 0", "--max-iterations: 0, must be >= 1");
  expect("--preconditioner -3", "--preconditioner: -3, must be >= 0");
  expect("--init ''", "--init: empty, must name something");
}

class ForgetCommandFull : public ::testing::Test {
 protected:
  // Fine-tuned for a few epochs: enough for a shift that means something.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const CommandResult trained = pumice(
        "train --init " + body +
        " --classes 0-2 --per-class 10 --test-per-class 8 --validation-per-class 6 --epochs 25 "
        "--batch 8 --rate 0.003 --weight-decay 0.02 --no-early-stop --quiet --out " +
        path("w.safetensors"));
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    const CommandResult drawn = pumice(
        "data make cohort --classes 0-2 --per-class 10 --validation-per-class 6 --forget-class 0 "
        "--forget-count 3 --out " +
        path("c.txt"));
    ASSERT_EQ(drawn.exit_code, 0) << drawn.error;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string request() {
    return "forget --model " + path("w.safetensors") + " --init " + path("w.start.safetensors") +
           " --cohort " + path("c.txt") + " ";
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* ForgetCommandFull::folder_ = nullptr;

TEST_F(ForgetCommandFull, AllMethodsOfOneCallShareAKernelAndFillAFolder) {
  const CommandResult result =
      pumice(request() +
             "--method consistent ntk newton fisher finetune retrain original --noise 1e-7 "
             "--noise-seed 3 --distribution " +
             path("d") + " --record " + path("r.json") + " --out " + path("all"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.output.find("Examination"), std::string::npos);
  EXPECT_NE(result.output.find("this release is not private"), std::string::npos);
  EXPECT_NE(result.output.find("The cohort is still in: "), std::string::npos);
  const json record = json::parse(content_of(path("r.json")));
  EXPECT_EQ(record["pumice_record"], "forget");
  EXPECT_EQ(record["cohort_size"], 3);
  ASSERT_EQ(record["methods"].size(), 7U);
  int shared = 0;
  for (const json& method : record["methods"]) {
    const std::string name = method["method"];
    EXPECT_TRUE(method["converged"].get<bool>()) << name;
    EXPECT_FALSE(method["noise"]["private"].get<bool>()) << name;
    shared += method["shared_kernel"].get<bool>();
    const Checkpoint scrubbed = open_checkpoint(path("all/" + name + ".safetensors"));
    EXPECT_EQ(digest(*scrubbed.model, scrubbed.weights), method["model"]) << name;
    EXPECT_EQ(scrubbed.metadata.at("forgotten"), "3 of 30 training examples");
    EXPECT_TRUE(std::filesystem::exists(path("d/" + name + ".safetensors")));
  }
  EXPECT_GE(shared, 2);
  EXPECT_EQ(record["noise_seed"], 3);
  // Neither ids nor a digest that a guess could confirm.
  const std::string text = content_of(path("r.json"));
  for (const std::string& id : read_ids(path("c.txt"))) {
    EXPECT_EQ(text.find(id), std::string::npos);
  }
  EXPECT_TRUE(record["cohort_digest"].get<std::string>().starts_with("blake2b-keyed:"));
  EXPECT_EQ(record["applicability"]["checks"].size(), 6U);
}

TEST_F(ForgetCommandFull, TheShiftRaisesTheCohortsLossAndIsComparedWithARetrainedModel) {
  const CommandResult retrained =
      pumice("train --init " + path("w.start.safetensors") + " --exclude " + path("c.txt") +
             " --quiet --out " + path("r.safetensors"));
  ASSERT_EQ(retrained.exit_code, 0) << retrained.error;
  const CommandResult result =
      pumice(request() + "--reference " + path("r.safetensors") + " --record-ids --record " +
             path("one.json") + " --json --out " + path("s.safetensors"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json record = json::parse(result.output);
  const json& method = record["methods"][0];
  EXPECT_EQ(method["method"], "consistent");
  EXPECT_FALSE(method.contains("noise"));
  EXPECT_GT(method["reference"]["cosine"].get<double>(), 0);
  EXPECT_GT(method["errors"]["cohort"]["loss"].get<double>(),
            record["errors_before"]["cohort"]["loss"].get<double>());
  EXPECT_EQ(record["cohort_ids"].size(), 3U);
  // The same request again refuses to overwrite, and gives the same shift when told to.
  EXPECT_EQ(pumice(request() + "--out " + path("s.safetensors")).exit_code, 1);
  const at::Tensor before = open_checkpoint(path("s.safetensors")).weights.flat;
  ASSERT_EQ(pumice(request() + "--quiet --force --out " + path("s.safetensors")).exit_code, 0);
  // Not the same bytes: how the kernel is cut depends on the memory that is free.
  const at::Tensor again = open_checkpoint(path("s.safetensors")).weights.flat;
  EXPECT_LT((again - before).norm().item<double>(), 1e-3 * method["shift_norm"].get<double>());
  EXPECT_EQ(method["margins"]["unseen_examples"], 18);
}

TEST_F(ForgetCommandFull, ADryRunForecastsEachMethodAndWritesNothing) {
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(path("")),
                         std::filesystem::directory_iterator{});
  };
  const auto before = files();
  const CommandResult result =
      pumice(request() + "--method consistent newton finetune retrain --dry-run --json");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const json forecast = json::parse(result.output);
  EXPECT_TRUE(forecast["dry_run"].get<bool>());
  ASSERT_EQ(forecast["methods"].size(), 4U);
  for (const json& method : forecast["methods"]) {
    EXPECT_GT(method["seconds"].get<double>(), 0) << method;
    EXPECT_LE(method["seconds_low"], method["seconds_high"]) << method;
    EXPECT_GT(method["bytes"].get<double>(), 0) << method;
    EXPECT_GT(method["epoch_equivalents"].get<double>(), 0) << method;
  }
  EXPECT_EQ(forecast["methods"][0]["solver"], "dense");  // 30 examples: the sample is everything
  EXPECT_GT(forecast["methods"][0]["matrix_free"]["iterations"]["expected"].get<double>(), 1);
  // The second method finds the kernel of the first.
  EXPECT_LT(forecast["methods"][1]["epoch_equivalents"],
            forecast["methods"][0]["epoch_equivalents"]);
  EXPECT_EQ(forecast["methods"][2]["epoch_equivalents"], 9);  // ten epochs on 27 of 30
  const CommandResult asked = pumice(request() + "--solver matrix-free --dry-run");
  ASSERT_EQ(asked.exit_code, 0) << asked.error;
  EXPECT_NE(asked.output.find("consistent: matrix-free, as asked for"), std::string::npos);
  EXPECT_EQ(files(), before);
  EXPECT_EQ(pumice(request()).exit_code, 2);  // without --dry-run it needs --out
}

TEST_F(ForgetCommandFull, WithoutTheKernelTheShiftIsTheSameAndTheRecordSaysHow) {
  const auto shifted = [&](const std::string& solver) {
    const CommandResult result =
        pumice(request() + "--scale 1 --json --solver " + solver + " --record " +
               path(solver + ".json") + " --out " + path(solver + ".safetensors"));
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return (open_checkpoint(path(solver + ".safetensors")).weights.flat -
            open_checkpoint(path("w.safetensors")).weights.flat)
        .to(at::kDouble);
  };
  const at::Tensor dense = shifted("dense"), free = shifted("matrix-free");
  // As near as float32 carries both of them here, where the model fits its 30 examples almost
  // exactly; elsewhere they agree to .9999 (matrix_free_test.cpp).
  EXPECT_GT((dense.dot(free) / (dense.norm() * free.norm())).item<double>(), 0.999);
  const json method = json::parse(content_of(path("matrix-free.json")))["methods"][0];
  EXPECT_EQ(method["solver"], "matrix-free");
  EXPECT_GT(method["iterations"], 1);
  EXPECT_LE(method["error_bound"].get<double>(), 1e-3);
  EXPECT_TRUE(method.contains("preconditioner"));
}

// The kernel of the larger one alone would take 618 MiB.
TEST_F(ForgetCommandFull, TenTimesTheExamplesTakeNoMoreMemoryWithoutTheKernel) {
  const std::string measure =
      std::string(PUMICE_PYTHON) +
      " -c \"import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); "
      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)\" ";
  std::map<int, double> peak;  // MiB
  for (const int each : {100, 1000}) {
    const std::string name = path("m" + std::to_string(each));
    const std::string data = " --classes 0-2 --per-class " + std::to_string(each) + " ";
    const CommandResult trained = pumice("train --architecture mlp --preset finetune" + data +
                                         "--test-per-class 5 --epochs 2 --weight-decay 0.02 "
                                         "--no-early-stop --quiet --out " +
                                         name + ".safetensors");
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    const CommandResult drawn =
        pumice("data make cohort" + data + "--forget-class 0 --forget-count 5 --out " + name);
    ASSERT_EQ(drawn.exit_code, 0) << drawn.error;
    const CommandResult result = run_command(
        measure + PUMICE_TOOL + " forget --model " + name + ".safetensors --init " + name +
        ".start.safetensors --cohort " + name + " --solver matrix-free --curvature softmax " +
        "--memory 64M --tolerance 0.01 --scale 1 --quiet --out " + name + ".scrubbed.safetensors");
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const std::string lines = result.output.substr(0, result.output.find_last_not_of('\n') + 1);
    peak[each] = std::stod(lines.substr(lines.rfind('\n') + 1)) / 1024;
  }
  EXPECT_GT(peak[100], 50);
  EXPECT_LT(peak[1000], peak[100] + 64);
}

TEST_F(ForgetCommandFull, TheNoiseOfARealReleaseCannotBeRepeated) {
  for (const char* name : {"n1.safetensors", "n2.safetensors"}) {
    const CommandResult result =
        pumice(request() + "--method original --noise 1e-6 --quiet --out " + path(name));
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }
  EXPECT_NE(digest(open_checkpoint(path("n1.safetensors")).weights),
            digest(open_checkpoint(path("n2.safetensors")).weights));
}

TEST_F(ForgetCommandFull, WithoutAStartTheCentreOfTheDecayIsTheUsersChoice) {
  for (const std::string centre : {"zero", "self"}) {
    const CommandResult result = pumice("forget --model " + path("w.safetensors") + " --cohort " +
                                        path("c.txt") + " --decay-centre " + centre +
                                        " --force --json --out " + path(centre + ".safetensors"));
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const json record = json::parse(result.output);
    EXPECT_EQ(record["decay_centre"], centre);
    EXPECT_FALSE(record.contains("start"));
    EXPECT_EQ(record["applicability"]["advice"] == "go", false);
  }
}

TEST_F(ForgetCommandFull, BadInputEndsBeforeAnyWorkWithOneSentence) {
  const auto expect = [](int code, const std::string& arguments, const std::string& sentence) {
    const CommandResult result = pumice(arguments + " --out " + path("no.safetensors"));
    EXPECT_EQ(result.exit_code, code) << arguments << result.error;
    EXPECT_NE(result.error.find(sentence), std::string::npos) << result.error;
    EXPECT_FALSE(std::filesystem::exists(path("no.safetensors")));
  };
  const std::string model = "forget --model " + path("w.safetensors") + " ";
  const std::string cohort = " --cohort " + path("c.txt");
  expect(2, model + cohort, "--decay-centre zero or self");
  expect(1, model + cohort + " --init " + body, "must have the names and shapes of the model");
  expect(1, request() + "--per-class 9", "the model was trained on");
  expect(2, request() + "--weight-decay 0",
         "--weight-decay: 0, must be > 0 for method 'consistent'");
  write_ids(path("unknown.txt"), {"train/99999999"});
  expect(1, model + "--init " + path("w.start.safetensors") + " --cohort " + path("unknown.txt"),
         "train/99999999");
}

TEST_F(ForgetCommandFull, ASolveThatDoesNotConvergeKeepsItsIteratesToGoOnFrom) {
  const std::string out = path("unconverged.safetensors"), kept = out + ".checkpoint";
  const std::string solve =
      request() + "--quiet --solver matrix-free --curvature softmax --scale 1 --out " + out;
  const CommandResult failed = pumice(solve + " --max-iterations 2");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.error.find("pumice: not converged, no model was written for it "), 0u)
      << failed.error;
  EXPECT_NE(failed.error.find("ask for this method alone with --checkpoint " + kept),
            std::string::npos)
      << failed.error;
  EXPECT_FALSE(std::filesystem::exists(out));
  const CommandResult again = pumice(solve + " --checkpoint " + kept);
  EXPECT_EQ(again.exit_code, 0) << again.error;
  EXPECT_NE(again.output.find("Went on from " + kept), std::string::npos) << again.output;
  EXPECT_FALSE(std::filesystem::exists(kept));
}

TEST_F(ForgetCommandFull, TorchScriptInTorchScriptOutAndPythonLoadsIt) {
  const std::string reference =
      std::string(PUMICE_PYTHON) + " " PUMICE_SOURCE_DIR "/tests/fixtures/reference_networks.py ";
  ASSERT_EQ(run_command(reference + "torchscript trace " + path("foreign.pt")).exit_code, 0);
  // A foreign model knows neither its data nor its decay: both are said, and it was never trained
  // on them, which the examination may refuse.
  const CommandResult trained =
      pumice("train --init " + path("foreign.pt") +
             " --head keep --classes 0-2 --per-class 6 --image-size 8 --epochs 5 --rate 0.05 "
             "--weight-decay 0.05 --no-early-stop --quiet --out " +
             path("f.pt"));
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  ASSERT_EQ(pumice("data make cohort --classes 0-2 --per-class 6 --image-size 8 --forget-class 1 "
                   "--forget-count 2 --out " +
                   path("fc.txt"))
                .exit_code,
            0);
  const CommandResult result =
      pumice("forget --model " + path("f.pt") + " --init " + path("f.start.pt") + " --cohort " +
             path("fc.txt") + " --noise 1e-8 --force --quiet --out " + path("scrubbed.pt"));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::string script =
      "import torch; m = torch.jit.load('" + path("scrubbed.pt") + "'); o = torch.jit.load('" +
      path("f.pt") +
      "'); assert not m.training; assert m(torch.rand(2, 1, 8, 8)).shape == (2, 3); "
      "d = sum(float((a - b).abs().sum()) for a, b in zip(m.parameters(), o.parameters())); "
      "assert d > 0";
  const CommandResult loaded = run_command(std::string(PUMICE_PYTHON) + " -c \"" + script + "\"");
  EXPECT_EQ(loaded.exit_code, 0) << loaded.error;
}

}  // namespace
}  // namespace pumice
