#include "pumice/experiment/protocol.h"

#include <algorithm>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/experiment/toml_reader.h"
#include "pumice/model/zoo.h"

namespace pumice {
namespace {

template <typename Value>
void take(const std::optional<Value>& given, Value& target) {
  if (given) target = *given;
}

template <typename Value>
void take(const std::optional<Value>& given, std::optional<Value>& target) {
  if (given) target = given;
}

DataRequest read_data(TomlTable table) {
  DataRequest request;
  const auto source = table.string("source");
  if (!source) table.refuse("source", "must name a data set (see 'pumice data list') or kind:PATH");
  request.spec = *source;
  take(table.string("test"), request.test_spec);
  take(table.label("classes"), request.selection.classes);
  take(table.whole("per_class", 1), request.selection.per_class);
  take(table.whole("test_per_class", 1), request.selection.test_per_class);
  take(table.whole("validation_per_class", 0), request.selection.validation_per_class);
  take(table.whole("image_size", 4), request.source.image_size);
  take(table.whole("channels", 1), request.source.channels);
  if (request.source.image_size > 1024) table.refuse("image_size", "must be in 4 … 1024");
  if (request.source.channels == 2 || request.source.channels > 3) {
    table.refuse("channels", "must be 1 or 3");
  }
  table.finish();
  return request;
}

void read_recipe(TomlTable& table, TrainingOptions& recipe) {
  take(table.whole("epochs", 1), recipe.epochs);
  take(table.whole("batch", 1), recipe.batch_size);
  take(table.number("rate", positive), recipe.rate);
  take(table.number("momentum", a_share), recipe.momentum);
  take(table.number("weight_decay", not_negative), recipe.weight_decay);
  if (const auto centre = table.word("decay_centre", {"start", "zero"})) {
    recipe.decay_centre = *centre == "start" ? DecayCentre::start : DecayCentre::zero;
  }
  if (const auto schedule = table.word("schedule", {"constant", "one-cycle"})) {
    recipe.schedule = *schedule == "constant" ? Schedule::constant : Schedule::one_cycle;
  }
  take(table.flag("augment"), recipe.augment);
  take(table.whole("after_zero_error", 0), recipe.epochs_after_zero_error);
  if (const auto early = table.flag("early_stop")) {
    if (*early && !recipe.epochs_after_zero_error) {
      table.refuse("early_stop", "needs after_zero_error");
    }
    if (!*early) recipe.epochs_after_zero_error.reset();
  }
}

ModelProtocol read_model(TomlTable table, const std::filesystem::path& folder) {
  ModelProtocol model;
  const auto body = table.string("body");
  const auto architecture = table.word("architecture", architecture_names());
  const auto width = table.number("width", positive);
  auto pretraining = table.table("pretraining");
  if (body.has_value() == architecture.has_value()) {
    table.refuse_table("must have either body (a file) or architecture");
  }
  if (body) {
    if (width) table.refuse("width", "means nothing with body, which has its own");
    if (pretraining) table.refuse("pretraining", "means nothing with body, which is trained");
    model.body = (folder / *body).lexically_normal();
  } else {
    model.architecture = *architecture;
    take(width, model.width);
  }
  if (pretraining) {
    Pretraining body_training;
    auto data = pretraining->table("data");
    if (!data) pretraining->refuse_table("needs [model.pretraining.data]");
    body_training.data = read_data(*data);
    take(pretraining->seed("seed"), body_training.recipe.seed);
    body_training.recipe.order_seed = body_training.data.selection.seed = body_training.recipe.seed;
    read_recipe(*pretraining, body_training.recipe);
    pretraining->finish();
    model.pretraining = body_training;
  }
  table.finish();
  return model;
}

// `noise = 1e-6` in a method, `scale = 1e-6` in [noise]: the rest is the same in both.
void read_noise(TomlTable& table, const std::string& scale, const std::string& prefix,
                NoiseOptions& noise) {
  take(table.number(scale, not_negative), noise.scale);
  if (const auto shape = table.word(prefix + "shape", {"fisher", "paper"})) {
    noise.shape = noise_shape_named(*shape);
  }
  take(table.number(prefix + "epsilon", positive), noise.epsilon);
  take(table.number(prefix + "cap", positive), noise.cap);
}

MethodProtocol read_method(TomlTable table, const NoiseOptions& noise, const Protocol& protocol) {
  std::vector<std::string> names;
  for (const MethodEntry& entry : forgetting_methods()) names.push_back(entry.name);
  const auto name = table.word("name", names);
  if (!name) table.refuse("name", "must name a method");
  MethodProtocol method{.label = table.string("label").value_or(*name),
                        .scrub = {.method = *name, .options = {}, .noise = noise}};
  MethodOptions& options = method.scrub.options;
  if (const auto curvature = table.word("curvature", {"identity", "softmax"})) {
    options.curvature = curvature_named(*curvature);
  }
  take(table.number("ridge", positive), options.ridge);
  take(table.number("scale", positive), options.scale);
  if (const auto at = table.word("linearize_at", {"weights", "start"})) {
    options.linearize_at = *at == "start" ? LinearizeAt::start : LinearizeAt::weights;
  }
  take(table.flag("trapezium"), options.trapezium);
  if (const auto solver = table.word("solver", {"auto", "dense", "matrix-free"})) {
    options.solver = solver_named(*solver);
  }
  take(table.whole("epochs", 1), options.finetune_epochs);
  take(table.number("rate", positive), options.finetune_rate);
  options.replace = protocol.replace;
  read_noise(table, "noise", "noise_", method.scrub.noise);
  const MethodEntry& entry = method_named(*name);
  if (entry.needs_noise && method.scrub.noise.scale == 0) {
    table.refuse("noise", text("must be > 0, since ", *name, " is noise alone"));
  }
  if (entry.needs_ridge && !options.ridge && protocol.recipe.weight_decay == 0) {
    table.refuse("ridge", text("must be given, since the recipe's weight_decay is 0 and ", *name,
                               " needs one"));
  }
  table.finish();
  return method;
}

void read_relearning(TomlTable table, RelearnOptions& relearn) {
  take(table.number("rate", positive), relearn.rate);
  take(table.whole("batch", 1), relearn.batch_size);
  take(table.number("weight_decay", not_negative), relearn.weight_decay);
  take(table.whole("epochs", 1), relearn.max_epochs);
  table.finish();
}

void read_readouts(TomlTable table, Protocol& protocol) {
  AuditOptions& audit = protocol.audit;
  std::vector<std::string> groups;
  for (const AuditGroup& group : audit_groups()) groups.push_back(group.name);
  take(table.words("groups", groups), audit.groups);
  if (auto relearn = table.table("relearn")) read_relearning(*relearn, audit.relearn);
  if (const auto answers = table.word("answers", {"logits", "softmax"})) {
    audit.answers = *answers == "softmax" ? Answers::softmax : Answers::logits;
  }
  take(table.number("floor", not_negative), audit.floor);
  take(table.whole("joint_queries", 1), audit.joint_queries);
  take(table.whole("adversarial_starts", 1), audit.adversarial_starts);
  take(table.whole("adversarial_iterations", 1), audit.adversarial_iterations);
  take(table.whole("path_steps", 1), audit.path_steps);
  take(table.whole("shadows", 2), protocol.shadows);
  const bool asked =
      std::find(audit.groups.begin(), audit.groups.end(), "shadows") != audit.groups.end();
  if (asked && protocol.shadows == 0) {
    table.refuse("shadows", "must say how many of each kind, since the group is asked for");
  }
  if (!asked && protocol.shadows > 0 && !audit.groups.empty()) {
    table.refuse("shadows", "means nothing unless the group 'shadows' is asked for");
  }
  table.finish();
}

void read_figures(TomlTable table, FigureProtocol& figures) {
  take(table.numbers("tradeoff", positive), figures.tradeoff);
  take(table.whole("tradeoff_queries", 1), figures.tradeoff_queries);
  take(table.flag("ablations"), figures.ablations);
  take(table.flag("landscape"), figures.landscape);
  take(table.flag("projection"), figures.projection);
  table.finish();
}

void read_cohort(TomlTable table, Protocol& protocol) {
  const auto label = table.label("class");
  if (!label) table.refuse("class", "must say of which class examples are forgotten");
  protocol.cohort_class = *label;
  const auto count = table.whole("count", 1);
  if (!count) table.refuse("count", "must say how many examples are forgotten");
  protocol.cohort_size = *count;
  take(table.whole("cohorts", 1), protocol.cohorts);
  const auto& per_class = protocol.data.selection.per_class;
  if (per_class && *count > *per_class) {
    table.refuse("count", text("must be <= ", *per_class, ", the examples of a class"));
  }
  table.finish();
}

TomlTable need(TomlTable& top, const std::string& name) {
  auto table = top.table(name);
  if (!table) top.refuse_table(text("[", name, "] is missing, must be there"));
  return *table;
}

void read_references(TomlTable table, Protocol& protocol) {
  take(table.whole("count", 1), protocol.references);
  take(table.flag("replace"), protocol.replace);
  table.finish();
}

}  // namespace

Protocol parse_protocol(const std::string& text, const std::filesystem::path& file) {
  TomlTable top = TomlTable::parse(text, file.string());
  Protocol protocol;
  protocol.text = text;
  protocol.file = file;
  protocol.title = top.string("title").value_or(file.stem().string());
  take(top.seeds("seeds"), protocol.seeds);
  if (const auto memory = top.string("memory")) {
    try {
      protocol.memory = parse_bytes(*memory);
    } catch (const Error&) {
      top.refuse("memory", "must be a size such as 2G");
    }
  }
  protocol.data = read_data(need(top, "data"));
  protocol.model = read_model(need(top, "model"), file.parent_path());
  if (auto recipe = top.table("recipe")) {
    read_recipe(*recipe, protocol.recipe);
    recipe->finish();
  }
  read_cohort(need(top, "cohort"), protocol);
  if (auto references = top.table("references")) read_references(*references, protocol);
  NoiseOptions noise;
  if (auto table = top.table("noise")) {
    read_noise(*table, "scale", "", noise);
    table->finish();
  }
  for (TomlTable& table : top.tables("methods")) {
    protocol.methods.push_back(read_method(table, noise, protocol));
    const std::string& label = protocol.methods.back().label;
    const auto same = [&](const MethodProtocol& method) { return method.label == label; };
    if (std::count_if(protocol.methods.begin(), protocol.methods.end(), same) > 1) {
      table.refuse("label",
                   "must be given and unique where two methods are called '" + label + "'");
    }
  }
  if (protocol.methods.empty()) top.refuse_table("no [[methods]], must have at least one");
  if (auto readouts = top.table("readouts")) read_readouts(*readouts, protocol);
  if (auto figures = top.table("figures")) read_figures(*figures, protocol.figures);
  top.finish();
  return protocol;
}

Protocol read_protocol(const std::filesystem::path& file) {
  return parse_protocol(read_file(file), file);
}

Protocol with_seeds(Protocol protocol, const std::vector<std::uint64_t>& seeds) {
  for (const std::uint64_t seed : seeds) {
    if (std::find(protocol.seeds.begin(), protocol.seeds.end(), seed) == protocol.seeds.end()) {
      std::string known;
      for (const std::uint64_t each : protocol.seeds)
        known += text(known.empty() ? "" : ", ", each);
      fail(protocol.file.string(), ": has no seed ", seed, ", must be of its seeds ", known);
    }
  }
  const bool with_first =
      std::find(seeds.begin(), seeds.end(), protocol.seeds.front()) != seeds.end();
  protocol.figures.landscape = protocol.figures.landscape && with_first;
  protocol.figures.projection = protocol.figures.projection && with_first;
  std::erase_if(protocol.seeds, [&](std::uint64_t seed) {
    return std::find(seeds.begin(), seeds.end(), seed) == seeds.end();
  });
  return protocol;
}

}  // namespace pumice
