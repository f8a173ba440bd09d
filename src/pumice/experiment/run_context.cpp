#include "pumice/experiment/run_context.h"

#include <algorithm>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/experiment/references.h"
#include "pumice/experiment/shadow_models.h"

namespace pumice {
namespace {

using Json = nlohmann::json;

// Of the steps' formats: a change of what a step computes or stores needs a new number.
constexpr int training_revision = 1;
constexpr int scrub_revision = 1;

std::uint64_t cohort_seed(std::uint64_t seed, std::int64_t cohort) {
  return cohort == 1 ? seed : stream_seed(seed, text("cohort/", cohort));
}

std::string positions_digest(const std::vector<std::int64_t>& positions) {
  Digest digest;
  for (const std::int64_t position : positions) {
    digest.add_number(static_cast<std::uint64_t>(position));
  }
  return digest.hex();
}

}  // namespace

Json identity(const NoiseOptions& noise) {
  Json json{{"scale", noise.scale}};
  if (noise.scale == 0) return json;
  json.update({{"shape", noise_shape_name(noise.shape)}, {"epsilon", noise.epsilon}});
  if (noise.cap) json["cap"] = *noise.cap;
  return json;
}

Json identity(const MethodProtocol& method) {
  const MethodOptions& options = method.scrub.options;
  Json json{{"name", method.scrub.method},
            {"linearize_at", options.linearize_at == LinearizeAt::start ? "start" : "weights"},
            {"trapezium", options.trapezium},
            {"epochs", options.finetune_epochs},
            {"rate", options.finetune_rate},
            {"replace", options.replace},
            {"noise", identity(method.scrub.noise)}};
  if (options.curvature) json["curvature"] = curvature_name(*options.curvature);
  if (options.ridge) json["ridge"] = *options.ridge;
  if (options.scale) json["scale"] = *options.scale;
  if (options.solver) json["solver"] = solver_name(*options.solver);
  return json;
}

RunContext::RunContext(const ExperimentSetup& setup, const SeedData& data, std::int64_t cohort)
    : setup_(setup),
      data_(data),
      cohort_(cohort),
      cohort_ids_(draw_cohort(data.selection.train, setup.protocol().cohort_class,
                              setup.protocol().cohort_size, cohort_seed(data.seed, cohort))),
      split_(make_split(data.selection.train, data.selection.test, cohort_ids_)),
      recipe_(setup.protocol().recipe) {
  recipe_.seed = recipe_.order_seed = data.seed;
}

std::string RunContext::title() const {
  return text("seed ", data_.seed, protocol().cohorts > 1 ? text(", cohort ", cohort_) : "");
}

bool RunContext::paths_are_drawn() const {
  return protocol().figures.projection && data_.seed == protocol().seeds.front();
}

RunContext::TrainingPlan RunContext::original_plan() const {
  return {.title = "train on all examples",
          .recipe = recipe_,
          .with_cohort = true,
          .keep_epochs = paths_are_drawn()};
}

RunContext::TrainingPlan RunContext::reference_plan(std::int64_t index) const {
  return {.title = text("retrain without the cohort, ", index + 1, " of ", protocol().references),
          .recipe = reference_recipe(recipe_, index),
          .with_cohort = false,
          .keep_epochs = paths_are_drawn() && index == 0};
}

RunContext::TrainingPlan RunContext::retrain_plan() const {
  return {.title = "retrain once more, as a method",
          .recipe = reference_recipe(recipe_, protocol().references),
          .with_cohort = false,
          .keep_epochs = false};
}

RunContext::TrainingPlan RunContext::shadow_plan(bool with_cohort, std::int64_t index) const {
  return {.title = text("shadow ", index + 1, " of ", protocol().shadows,
                        with_cohort ? " with the cohort" : " without it"),
          .recipe = shadow_recipe(recipe_, with_cohort, index),
          .with_cohort = with_cohort,
          .keep_epochs = false};
}

StepKey RunContext::key(const TrainingPlan& plan) const {
  Json depends{{"revision", training_revision},  {"body", setup_.body_identity()},
               {"head_seed", data_.seed},        {"data", data_.train_digest},
               {"recipe", to_json(plan.recipe)}, {"keep_epochs", plan.keep_epochs},
               {"threads", setup_.threads()}};
  if (!plan.with_cohort) {
    depends["excluded"] = positions_digest(split_.cohort);
    depends["replace"] = protocol().replace;
  }
  return {.kind = "training", .depends = depends};
}

StepKey RunContext::scrub_key(const MethodProtocol& method) const {
  Json depends{{"revision", scrub_revision},
               {"original", key(original_plan()).digest()},
               {"cohort", positions_digest(split_.cohort)},
               {"method", identity(method)},
               {"label", method.label}};  // its noise has a stream of its own
  if (method.scrub.method == "retrain") depends["retrained"] = key(retrain_plan()).digest();
  if (!data_.validation_digest.empty()) depends["validation"] = data_.validation_digest;
  return {.kind = "scrub", .depends = depends};
}

std::vector<std::string> RunContext::reference_digests() const {
  std::vector<std::string> digests;
  for (std::int64_t i = 0; i < protocol().references; ++i) {
    digests.push_back(key(reference_plan(i)).digest());
  }
  return digests;
}

const ExperimentSetup::SeedStart& RunContext::start() {
  if (!start_) start_ = setup_.start_of(data_);
  return *start_;
}

const Weights& RunContext::trained(const TrainingPlan& plan) {
  const StepKey own = key(plan);
  const auto kept = trained_.find(own.digest());
  if (kept != trained_.end()) return kept->second;
  const Weights weights = open_checkpoint(setup_.store().folder_of(own) / "w.safetensors").weights;
  // The layout of this run's own model, so that all weights share it.
  return trained_[own.digest()] = {start().start.weights.layout, weights.flat};
}

std::vector<Weights> RunContext::references() {
  std::vector<Weights> all;
  for (std::int64_t i = 0; i < protocol().references; ++i) {
    all.push_back(trained(reference_plan(i)));
  }
  return all;
}

const ForgettingTask& RunContext::task() {
  if (task_) return *task_;
  task_.emplace(ForgettingTask{
      .model = model(),
      .weights = trained(original_plan()),
      .centre = recipe_.decay_centre == DecayCentre::zero
                    ? at::zeros_like(start().start.weights.flat)
                    : start().start.weights.flat,
      .start = start().start.weights.flat,
      .train = data_.selection.train,
      .split = split_,
      .normalization = start().normalization,
      .weight_decay = recipe_.weight_decay,
      .recipe = recipe_,
      .validation = data_.selection.validation.size() > 0 ? &data_.selection.validation : nullptr});
  task_->linear.memory = protocol().memory;
  task_->linear.progress = [this](const std::string& what, double share) { tell(what, share); };
  check(*task_);
  return *task_;
}

SharedProblems& RunContext::shared() {
  if (!shared_) shared_ = std::make_unique<SharedProblems>(task());
  return *shared_;
}

std::optional<RunContext::Release> RunContext::release_of(const MethodProtocol& method) {
  const StepKey own = scrub_key(method);
  const auto finished = setup_.store().find(own);
  if (!finished || !finished->content.value("succeeded", false)) return {};
  const std::filesystem::path folder = setup_.store().folder_of(own);
  const auto layout = start().start.weights.layout;
  return Release{.sample = {layout, open_checkpoint(folder / "released.safetensors").weights.flat},
                 .distribution = read_distribution(folder / "distribution.safetensors", layout)};
}

AuditedModel RunContext::noisy(const Weights& weights, const NoiseOptions& noise) {
  AuditedModel audited = without_noise(start().start.model, weights);
  if (noise.scale == 0) return audited;
  at::Tensor& fisher = fisher_[digest(weights)];
  if (!fisher.defined()) fisher = retained_fisher(task(), weights);
  audited.distribution.variance =
      noise_variance(fisher, *weights.layout, task().train.classes.size(), noise);
  return audited;
}

Audit& RunContext::audit(const NoiseOptions& given) {
  AuditOptions options = protocol().audit;
  const auto asked = [&](const char* group) {
    return options.groups.empty() ||
           std::find(options.groups.begin(), options.groups.end(), group) != options.groups.end();
  };
  // Only these readouts look at the references' noise: without them one audit serves all methods.
  NoiseOptions noise = given;
  if (!asked("bounds") && !asked("adversary")) noise.scale = 0;
  std::unique_ptr<KeptAudit>& kept = audits_[identity(noise).dump()];
  if (kept) return *kept->audit;
  kept = std::make_unique<KeptAudit>(
      KeptAudit{.task = {.train = data_.selection.train,
                         .split = split_,
                         .test = data_.selection.test,
                         .normalization = start().normalization,
                         .original = noisy(trained(original_plan()), noise),
                         .references = {}},
                .audit = {}});
  for (const Weights& reference : references()) {
    kept->task.references.push_back(noisy(reference, noise));
  }
  options.memory = protocol().memory;
  options.relearn.seed = data_.seed;
  options.progress = [this](const std::string& what, double share) { tell(what, share); };
  kept->audit = std::make_unique<Audit>(kept->task, options, known_readouts_);
  return *kept->audit;
}

TradeoffOptions RunContext::tradeoff_options(const MethodProtocol& method) const {
  TradeoffOptions options{.scales = protocol().figures.tradeoff,
                          .noise = method.scrub.noise,
                          .queries = protocol().figures.tradeoff_queries,
                          .answers = protocol().audit.answers,
                          .floor = protocol().audit.floor};
  options.noise.scale = 1;
  options.noise.seed = stream_seed(data_.seed, text("noise/", cohort_, "/", method.label));
  return options;
}

const TradeoffSide& RunContext::reference_side(const TradeoffOptions& options) {
  const std::string shape = identity(options.noise).dump();
  const auto kept = reference_sides_.find(shape);
  if (kept != reference_sides_.end()) return kept->second;
  return reference_sides_[shape] =
             tradeoff_side(task(), data_.selection.test, trained(reference_plan(0)), options);
}

void RunContext::release() {
  audits_.clear();
  known_readouts_ = std::make_shared<KnownReadouts>();
  reference_sides_.clear();
  fisher_.clear();
  shared_.reset();
  task_.reset();
  trained_.clear();
  start_.reset();
}

}  // namespace pumice
