#include "pumice/experiment/protocol.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;

// A small protocol, each part on lines of its own: errors are told by line.
const std::string complete = R"(title = "A title"
seeds = [1, 2]
memory = "2G"
[data]
source = "fashion-mnist"
classes = "0-4"
per_class = 100
test_per_class = 50
validation_per_class = 25
[model]
body = "../weights/body.safetensors"
[recipe]
epochs = 60
batch = 32
rate = 0.003
weight_decay = 0.02
[cohort]
class = 0
count = 25
cohorts = 2
[references]
count = 3
replace = true
[noise]
scale = 1e-9
shape = "paper"
[[methods]]
name = "consistent"
[[methods]]
name = "ntk"
label = "ntk at w0"
linearize_at = "start"
trapezium = false
curvature = "softmax"
ridge = 0.1
noise = 0
[readouts]
groups = ["errors", "distance"]
path_steps = 5
[readouts.relearn]
epochs = 7
[figures]
tradeoff = [1e-8, 1e-7]
ablations = true
)";

std::string refused(std::string from, const std::string& to) {
  std::string changed = complete;
  const std::size_t place = changed.find(from);
  if (place == std::string::npos) return "the test looks for what is not there: " + from;
  changed.replace(place, from.size(), to);
  return refusal([&] { parse_protocol(changed, "p/demo.toml"); });
}

TEST(Protocol, SaysEverythingThatTheFileSays) {
  const Protocol protocol = parse_protocol(complete, "p/demo.toml");
  EXPECT_EQ(protocol.title, "A title");
  EXPECT_EQ(protocol.seeds, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(protocol.memory, std::int64_t{2} << 30);
  EXPECT_EQ(protocol.data.selection.per_class, 100);
  EXPECT_EQ(protocol.model.body, "weights/body.safetensors");
  EXPECT_EQ(protocol.recipe.epochs, 60);
  EXPECT_EQ(protocol.recipe.momentum, 0.9);  // what is not said is the paper's fine-tuning
  EXPECT_EQ(protocol.recipe.epochs_after_zero_error, 5);
  EXPECT_EQ(protocol.cohort_class, "0");
  EXPECT_EQ(protocol.cohorts, 2);
  EXPECT_EQ(protocol.references, 3);
  ASSERT_EQ(protocol.methods.size(), 2U);
  EXPECT_EQ(protocol.methods[0].label, "consistent");
  EXPECT_EQ(protocol.methods[0].scrub.noise.scale, 1e-9);
  EXPECT_EQ(protocol.methods[0].scrub.noise.shape, NoiseShape::paper);
  EXPECT_EQ(protocol.methods[1].label, "ntk at w0");
  EXPECT_EQ(protocol.methods[1].scrub.noise.scale, 0);
  EXPECT_EQ(protocol.methods[1].scrub.options.linearize_at, LinearizeAt::start);
  EXPECT_FALSE(protocol.methods[1].scrub.options.trapezium);
  EXPECT_TRUE(protocol.methods[1].scrub.options.replace);
  EXPECT_EQ(protocol.audit.groups, (std::vector<std::string>{"errors", "distance"}));
  EXPECT_EQ(protocol.audit.relearn.max_epochs, 7);
  EXPECT_EQ(protocol.figures.tradeoff, (std::vector<double>{1e-8, 1e-7}));
  EXPECT_TRUE(protocol.figures.ablations);
  EXPECT_FALSE(protocol.figures.landscape);
}

TEST(Protocol, UnknownKeysAreToldWithTheirLineAndASuggestion) {
  EXPECT_EQ(refused("seeds =", "sedes ="),
            "p/demo.toml:2: unknown key 'sedes', did you mean 'seeds'?");
  EXPECT_EQ(refused("per_class = 100", "perclass = 100"),
            "p/demo.toml:7: unknown key 'perclass' in [data], did you mean 'per_class'?");
  EXPECT_EQ(refused("trapezium = false", "trapezum = false"),
            "p/demo.toml:33: unknown key 'trapezum' in [methods], did you mean 'trapezium'?");
  EXPECT_EQ(refused("[figures]", "[figurs]"),
            "p/demo.toml:42: unknown key 'figurs', did you mean 'figures'?");
  EXPECT_EQ(refused("epochs = 7", "colour = 7"),
            "p/demo.toml:41: unknown key 'colour' in [readouts.relearn]");
}

TEST(Protocol, ValuesOutOfRangeAreToldWithTheirLineAndTheRule) {
  EXPECT_EQ(refused("ridge = 0.1", "ridge = -0.1"), "p/demo.toml:35: ridge = -0.1, must be > 0");
  EXPECT_EQ(refused("weight_decay = 0.02", "weight_decay = -1"),
            "p/demo.toml:16: weight_decay = -1, must be >= 0");
  EXPECT_EQ(refused("count = 25", "count = 0"), "p/demo.toml:19: count = 0, must be >= 1");
  EXPECT_EQ(refused("count = 25", "count = 101"),
            "p/demo.toml:19: count = 101, must be <= 100, the examples of a class");
  EXPECT_EQ(refused("[1e-8, 1e-7]", "[1e-8, 0]"), "p/demo.toml:43: tradeoff: 0, must be > 0");
  EXPECT_EQ(refused("seeds = [1, 2]", "seeds = [1, 1]"), "p/demo.toml:2: seeds: 1 is there twice");
  EXPECT_EQ(refused("\"2G\"", "\"much\""),
            "p/demo.toml:3: memory = 'much', must be a size such as 2G");
}

TEST(Protocol, WrongTypesAreTold) {
  EXPECT_EQ(refused("per_class = 100", "per_class = \"many\""),
            "p/demo.toml:7: per_class = 'many', must be a whole number");
  EXPECT_EQ(refused("per_class = 100", "per_class = 1.5"),
            "p/demo.toml:7: per_class = 1.5, must be a whole number");
  EXPECT_EQ(refused("trapezium = false", "trapezium = 0"),
            "p/demo.toml:33: trapezium = 0, must be true or false");
  EXPECT_EQ(refused("[recipe]\nepochs = 60", "[[recipe]]\nepochs = 60"),
            "p/demo.toml:12: recipe = a list, must be a table, [recipe]");
  EXPECT_EQ(refused("seeds = [1, 2]", "seeds = 3"),
            "p/demo.toml:2: seeds = 3, must be a list of whole numbers");
}

TEST(Protocol, UnknownWordsGetASuggestion) {
  EXPECT_EQ(refused("\"consistent\"", "\"consitent\""),
            "p/demo.toml:28: name = 'consitent' is unknown, did you mean 'consistent'?");
  EXPECT_EQ(refused("\"softmax\"", "\"exact\""),
            "p/demo.toml:34: curvature = 'exact', must be one of identity, softmax");
  EXPECT_EQ(refused("\"errors\"", "\"erors\""),
            "p/demo.toml:38: groups = 'erors' is unknown, did you mean 'errors'?");
}

TEST(Protocol, WhatIsMissingOrContradictsIsTold) {
  EXPECT_EQ(refused("[cohort]\nclass = 0\n", "[cohort]\n"),
            "p/demo.toml:17: [cohort] class is missing, must say of which class examples are "
            "forgotten");
  EXPECT_EQ(refused("body = \"../weights/body.safetensors\"", "width = 2"),
            "p/demo.toml:10: [model] must have either body (a file) or architecture");
  EXPECT_EQ(refused("body = \"../weights/body.safetensors\"",
                    "body = \"../weights/body.safetensors\"\nwidth = 2"),
            "p/demo.toml:12: width = 2, means nothing with body, which has its own");
  EXPECT_EQ(refused("label = \"ntk at w0\"", "label = \"consistent\""),
            "p/demo.toml:31: label = 'consistent', must be given and unique where two methods are "
            "called 'consistent'");
  EXPECT_EQ(refused("name = \"consistent\"", "name = \"fisher\"\nnoise = 0"),
            "p/demo.toml:29: noise = 0, must be > 0, since fisher is noise alone");
  EXPECT_EQ(refused("\"errors\", \"distance\"", "\"shadows\""),
            "p/demo.toml:37: [readouts] shadows is missing, must say how many of each kind, since "
            "the group is asked for");
}

TEST(Protocol, TextThatIsNotTomlIsToldWithItsLine) {
  const std::string sentence = refused("per_class = 100", "per_class = = 100");
  EXPECT_TRUE(sentence.starts_with("p/demo.toml:7: ")) << sentence;
}

TEST(Protocol, TheShippedOnesAreReadable) {
  std::int64_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(PUMICE_SOURCE_DIR "/protocols")) {
    const Protocol protocol = read_protocol(file.path());
    EXPECT_FALSE(protocol.title.empty()) << file.path();
    // The paper forgets 25; the demo is smaller, to be quick.
    EXPECT_EQ(protocol.cohort_size, file.path().stem() == "demo" ? 15 : 25) << file.path();
    ++count;
  }
  EXPECT_EQ(count, 8);
}

}  // namespace
}  // namespace pumice
