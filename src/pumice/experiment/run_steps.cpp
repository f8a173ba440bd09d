#include "pumice/experiment/run_steps.h"

#include <algorithm>
#include <set>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/experiment/run_figures.h"
#include "pumice/experiment/shadow_models.h"
#include "pumice/model/training_run.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Of the steps' formats: a change of what a step computes or stores needs a new number.
constexpr int audit_revision = 2;
constexpr int tradeoff_revision = 1;
constexpr int ablations_revision = 1;
constexpr int landscape_revision = 1;
constexpr int projection_revision = 1;
constexpr int shadows_revision = 1;

// Work in training epochs on all examples.
struct Costs {
  double examples, test, retained, classes;

  explicit Costs(const RunContext& context)
      : examples(static_cast<double>(context.data().selection.train.size())),
        test(static_cast<double>(context.data().selection.test.size())),
        retained(static_cast<double>(context.split().retain.size())),
        classes(static_cast<double>(context.data().selection.train.classes.size())) {}

  double forward(double count) const { return count / (3 * examples); }
  // One forward pass and, for each class, a backward pass with its rows of the Jacobian.
  double rows(double count) const { return (1 + 2 * classes) * forward(count); }
};

// Training that stops early is taken to need half of what it may; where a finished one of the same
// recipe tells better, the experiment corrects it.
double expected_epochs(const TrainingOptions& recipe) {
  const auto most = static_cast<double>(recipe.epochs);
  return recipe.epochs_after_zero_error ? most / 2 : most;
}

bool asked(const Protocol& protocol, const std::string& group) {
  const std::vector<std::string>& groups = protocol.audit.groups;
  return groups.empty() || std::find(groups.begin(), groups.end(), group) != groups.end();
}

Json identity(const AuditOptions& options) {
  const RelearnOptions& relearn = options.relearn;
  return {{"groups", options.groups},
          {"relearn",
           {relearn.rate, relearn.batch_size, relearn.weight_decay, relearn.max_epochs,
            relearn.tolerance}},
          {"answers", options.answers == Answers::softmax ? "softmax" : "logits"},
          {"floor", options.floor},
          {"joint_queries", options.joint_queries},
          {"adversarial", {options.adversarial_starts, options.adversarial_iterations}},
          {"path_steps", options.path_steps},
          {"bootstrap",
           {options.bootstrap.confidence, options.bootstrap.resamples, options.bootstrap.seed}}};
}

Step training_step(RunContext& context, const RunContext::TrainingPlan& plan,
                   const WorkForecast& work) {
  return {.key = context.key(plan),
          .title = text(context.title(), ": ", plan.title),
          .seconds = work.epoch_seconds * expected_epochs(plan.recipe),
          .bytes = work.training_bytes,
          .work = [&context, plan](const fs::path& folder) {
            const Dataset& train = context.data().selection.train;
            const ExperimentSetup::SeedStart& start = context.start();
            const TrainingSet set{
                train, plan.with_cohort ? std::vector<std::int64_t>{} : context.split().cohort,
                !plan.with_cohort && context.protocol().replace};
            return run_training_step(
                folder / "w.safetensors", *start.start.model, start.start.weights, set,
                start.normalization, plan.recipe,
                training_metadata(context.data().request, train, start.normalization,
                                  set.excluded.size(), set.replace),
                plan.keep_epochs, [&](double share) { context.tell(plan.title, share); });
          }};
}

// The retrained model of the method `retrain` is trained by a step of its own.
ShiftResult retrained_shift(RunContext& context) {
  const ForgettingTask& task = context.task();
  const RunContext::TrainingPlan plan = context.retrain_plan();
  const StepResult trained = *context.setup().store().find(context.key(plan));
  ShiftResult result{.weights = context.trained(plan), .summary = {}};
  SummaryClock clock(task, result.summary);
  const double epochs = trained.content.at("epochs");
  const double share = context.protocol().replace ? 1.0
                                                  : static_cast<double>(task.split.retain.size()) /
                                                        static_cast<double>(task.train.size());
  clock.finish(result.weights.flat, epochs * share);
  result.summary.epochs = static_cast<std::int64_t>(epochs);
  result.summary.seconds = trained.content.at("seconds");
  return result;
}

Json scrub_work(RunContext& context, const MethodProtocol& method, const fs::path& folder) {
  ScrubOptions options = method.scrub;
  options.noise.seed = context.tradeoff_options(method).noise.seed;
  const ForgettingTask& task = context.task();
  const Scrubbed scrubbed = options.method == "retrain"
                                ? release(task, retrained_shift(context), options)
                                : scrub(task, context.shared(), options);
  Json content{{"summary", to_json(scrubbed.summary)}, {"succeeded", scrubbed.succeeded()}};
  if (!scrubbed.succeeded()) return content;
  task.model.save(folder / "released.safetensors", scrubbed.sample,
                  {{"forgetting", options.method}});
  write_distribution(folder / "distribution.safetensors", scrubbed.distribution);
  return content;
}

bool is_linear(const std::string& method) {
  return method_named(method).needs_ridge;
}

Step scrub_step(RunContext& context, const MethodProtocol& method, const WorkForecast& work,
                bool first_kernel) {
  const Costs costs(context);
  double seconds = method.scrub.noise.scale > 0 ? costs.rows(costs.retained) : 0;
  if (method.scrub.method == "finetune") {
    seconds += static_cast<double>(method.scrub.options.finetune_epochs);
  }
  if (is_linear(method.scrub.method)) seconds += 2;  // passes around the solve
  return {.key = context.scrub_key(method),
          .title = text(context.title(), ": forget with ", method.label),
          .seconds = seconds * work.epoch_seconds + (first_kernel ? work.kernel_seconds : 0),
          .bytes = is_linear(method.scrub.method) ? work.kernel_bytes : work.training_bytes,
          .work = [&context, &method](const fs::path& folder) {
            return scrub_work(context, method, folder);
          }};
}

std::vector<std::string> shadow_digests(const RunContext& context) {
  std::vector<std::string> digests;
  for (const bool with : {true, false}) {
    for (std::int64_t i = 0; i < context.protocol().shadows; ++i) {
      digests.push_back(context.key(context.shadow_plan(with, i)).digest());
    }
  }
  return digests;
}

ShadowMargins margins_of(RunContext& context, const MethodProtocol& method) {
  ShadowModels shadows;
  for (std::int64_t i = 0; i < context.protocol().shadows; ++i) {
    shadows.with_cohort.push_back(context.trained(context.shadow_plan(true, i)));
    shadows.without_cohort.push_back(context.trained(context.shadow_plan(false, i)));
  }
  ScrubOptions options = method.scrub;
  options.noise.seed = context.tradeoff_options(method).noise.seed;
  return shadow_margins(context.task(), context.data().selection.test, shadows, options);
}

// Which audit looks at the original and the references, too: the first one at everything, the first
// one with a noise of its own at what depends on it.
struct LooksBeside {
  bool at_answers = false, at_noise = false;
};

double audit_epochs(const RunContext& context, const MethodProtocol& method, LooksBeside beside) {
  const Protocol& protocol = context.protocol();
  const Costs costs(context);
  const double all = costs.examples + costs.test;
  const double others = 1.0 + static_cast<double>(protocol.references);
  double answers = costs.forward(all);
  // Models that forgot well need most of the epochs that they may have.
  if (asked(protocol, "relearn")) {
    answers += static_cast<double>(protocol.audit.relearn.max_epochs) / 2;
  }
  const bool bounds = asked(protocol, "bounds") && method.scrub.noise.scale > 0;
  const double noise = bounds ? costs.rows(all) : 0;
  double path = 0;
  if (asked(protocol, "path")) {
    path = static_cast<double>(protocol.audit.path_steps) * costs.forward(all);
  }
  return path + answers * (beside.at_answers ? 1 + others : 1) +
         noise * (beside.at_noise ? 1 + others : 1);
}

Step audit_step(RunContext& context, const MethodProtocol& method, const WorkForecast& work,
                LooksBeside beside) {
  const Protocol& protocol = context.protocol();
  const bool shadows = protocol.shadows > 0;
  Json depends{{"revision", audit_revision},
               {"scrub", context.scrub_key(method).digest()},
               {"references", context.reference_digests()},
               {"test", context.data().test_digest},
               {"options", identity(protocol.audit)}};
  if (shadows) depends["shadows"] = {shadows_revision, shadow_digests(context)};
  double epochs = audit_epochs(context, method, beside);
  double seconds = epochs * work.epoch_seconds;
  if (shadows && is_linear(method.scrub.method)) {
    seconds += static_cast<double>(protocol.shadows) * work.kernel_seconds;
  }
  return {.key = {.kind = "audit", .depends = depends},
          .title = text(context.title(), ": audit ", method.label),
          .seconds = seconds,
          .bytes = work.training_bytes,
          .work = [&context, &method, shadows](const fs::path&) -> Json {
            const auto release = context.release_of(method);
            if (!release) return {{"audit", nullptr}};
            std::optional<ShadowMargins> margins;
            if (shadows) margins = margins_of(context, method);
            const AuditReport report = context.audit(method.scrub.noise)
                                           .judge(method.label,
                                                  {.model = context.start().start.model,
                                                   .released = release->sample,
                                                   .distribution = release->distribution},
                                                  margins ? &*margins : nullptr);
            ForgettingSummary compared;
            compared.reference =
                compare(context.task().weights, release->distribution.mean, context.references());
            return {{"audit", to_json(report)}, {"reference", to_json(compared).at("reference")}};
          }};
}

Step tradeoff_step(RunContext& context, const MethodProtocol& method, const WorkForecast& work) {
  const TradeoffOptions options = context.tradeoff_options(method);
  const Costs costs(context);
  const double epochs =
      costs.rows(costs.retained) + costs.rows(3 * static_cast<double>(options.queries)) +
      static_cast<double>(options.scales.size()) * costs.forward(costs.examples + costs.test);
  return {
      .key = {.kind = "tradeoff",
              .depends = {{"revision", tradeoff_revision},
                          {"scrub", context.scrub_key(method).digest()},
                          {"reference", context.reference_digests().front()},
                          {"test", context.data().test_digest},
                          {"shape", identity(options.noise)},
                          {"scales", options.scales},
                          {"queries", options.queries},
                          {"answers", options.answers == Answers::softmax ? "softmax" : "logits"},
                          {"floor", options.floor}}},
      .title = text(context.title(), ": noise and information of ", method.label),
      .seconds = epochs * work.epoch_seconds,
      .bytes = work.training_bytes,
      .work = [&context, &method, options](const fs::path&) -> Json {
        const auto release = context.release_of(method);
        if (!release) return nullptr;
        const Dataset& test = context.data().selection.test;
        const TradeoffSide subject =
            tradeoff_side(context.task(), test, release->distribution.mean, options);
        return noise_tradeoff(context.task(), test, subject, context.reference_side(options),
                              options);
      }};
}

// A step whose result is one of the figures' parts.
Step figure_step(RunContext& context, const std::string& kind, int revision, double seconds,
                 std::int64_t bytes, Json (*draw)(RunContext&)) {
  Json depends{{"revision", revision},
               {"original", context.key(context.original_plan()).digest()},
               {"references", context.reference_digests()},
               {"test", context.data().test_digest}};
  if (kind != "ablations") {
    for (const MethodProtocol& method : context.protocol().methods) {
      depends["scrubs"].push_back(context.scrub_key(method).digest());
    }
  }
  return {.key = {.kind = kind, .depends = depends},
          .title = text(context.title(), ": ", kind),
          .seconds = seconds,
          .bytes = bytes,
          .work = [&context, draw](const fs::path&) { return draw(context); }};
}

void plan_trainings(RunContext& context, const WorkForecast& work, RunSteps& plan) {
  const Protocol& protocol = context.protocol();
  const auto add = [&](const RunContext::TrainingPlan& training) {
    plan.steps.push_back(training_step(context, training, work));
    return plan.steps.back().key;
  };
  plan.original = add(context.original_plan());
  for (std::int64_t i = 0; i < protocol.references; ++i) {
    plan.references.push_back(add(context.reference_plan(i)));
  }
  const auto retrains = [](const MethodProtocol& method) {
    return method.scrub.method == "retrain";
  };
  if (std::any_of(protocol.methods.begin(), protocol.methods.end(), retrains)) {
    add(context.retrain_plan());
  }
  for (const bool with : {true, false}) {
    for (std::int64_t i = 0; i < protocol.shadows; ++i) add(context.shadow_plan(with, i));
  }
}

void plan_figures(RunContext& context, const WorkForecast& work, bool drawn, RunSteps& plan) {
  const FigureProtocol& figures = context.protocol().figures;
  const Costs costs(context);
  const auto add = [&](const char* kind, int revision, double seconds, Json (*draw)(RunContext&)) {
    plan.steps.push_back(figure_step(context, kind, revision, seconds, work.kernel_bytes, draw));
    return plan.steps.back().key;
  };
  if (figures.ablations) {
    const double epochs = 8 * (1 + costs.forward(costs.examples + costs.test));
    plan.ablations = add("ablations", ablations_revision,
                         work.kernel_seconds + epochs * work.epoch_seconds, &ablations);
  }
  if (figures.landscape && drawn) {
    const double passes = 6 * line_positions + surface_side * surface_side;
    const double epochs = costs.forward(passes * landscape_examples);
    plan.landscape = add("landscape", landscape_revision, epochs * work.epoch_seconds, &landscape);
  }
  if (figures.projection && drawn) {
    plan.projection = add("projection", projection_revision, work.epoch_seconds, &projection);
  }
}

}  // namespace

RunSteps plan_run(RunContext& context, const WorkForecast& work, bool drawn) {
  RunSteps plan;
  plan_trainings(context, work, plan);
  bool first_kernel = true;
  for (const MethodProtocol& method : context.protocol().methods) {
    const bool linear = is_linear(method.scrub.method);
    plan.steps.push_back(scrub_step(context, method, work, linear && first_kernel));
    first_kernel = first_kernel && !linear;
    plan.scrubs[method.label] = plan.steps.back().key;
  }
  std::set<std::string> seen;  // noise settings
  for (const MethodProtocol& method : context.protocol().methods) {
    LooksBeside beside{.at_answers = seen.empty()};
    beside.at_noise = seen.insert(identity(method.scrub.noise).dump()).second;
    plan.steps.push_back(audit_step(context, method, work, beside));
    plan.audits[method.label] = plan.steps.back().key;
  }
  if (!context.protocol().figures.tradeoff.empty()) {
    for (const MethodProtocol& method : context.protocol().methods) {
      plan.steps.push_back(tradeoff_step(context, method, work));
      plan.tradeoffs[method.label] = plan.steps.back().key;
    }
  }
  plan_figures(context, work, drawn, plan);
  return plan;
}

}  // namespace pumice
