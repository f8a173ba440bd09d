#include "pumice/index/forgetting_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>

#include "pumice/core/atomic_file.h"
#include "pumice/core/atomic_folder.h"
#include "pumice/core/error.h"
#include "pumice/core/file_digest.h"
#include "pumice/core/system_random.h"
#include "pumice/model/torchscript_model.h"
#include "pumice/record/record.h"

namespace pumice {
namespace {

using Json = Ledger::Json;
namespace files = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* index_name = "index.safetensors";
constexpr const char* ledger_name = "ledger.jsonl";
constexpr std::size_t key_bytes = 32;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string point_name(const Model& model) {
  return "point" + file_extension(model);
}

// As sensitive as the weights before deletion: for its owner alone.
void protect(const files::path& path) {
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) fail(path.string(), ": cannot be protected");
}

std::vector<std::int64_t> all_but(std::int64_t examples, const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < examples; ++i) {
    if (!std::binary_search(rows.begin(), rows.end(), i)) others.push_back(i);
  }
  return others;
}

Json terms_entry(const IndexContent& content, const IndexReport& report) {
  return {{"examples", content.examples()},
          {"model", content.terms.model},
          {"ridge", content.terms.ridge},
          {"scale", content.terms.scale},
          {"solver_residual", report.relative_residual}};
}

Json noise_entry(const std::optional<NoiseSummary>& noise) {
  if (!noise) return nullptr;
  return {{"scale", noise->scale}, {"shape", noise->shape}, {"private", !noise->reproducible}};
}

ForgettingTask task_at(const IndexContent& content, const Checkpoint& checkpoint,
                       const Dataset& examples, const Split& split,
                       const LinearProblemOptions& options) {
  return {.model = *checkpoint.model,
          .weights = checkpoint.weights,
          .centre = content.centre,
          .start = {},
          .train = examples,
          .split = split,
          .normalization = content.terms.normalization,
          .weight_decay = content.terms.weight_decay,
          .loss = content.terms.loss,
          .recipe = {},
          .linear = options};
}

files::path checked_folder(files::path folder) {
  if (files::exists(folder / ledger_name)) return folder;
  fail(folder.string(), ": is no index, must be a folder that 'pumice index build' made");
}

Split retaining_all(std::int64_t examples) {
  return {.cohort = {}, .retain = all_but(examples, {})};
}

}  // namespace

IndexReport build_index(const files::path& folder, const IndexSource& source,
                        SharedProblems& shared) {
  const ForgettingTask& task = source.task;
  AtomicFolder target(folder, Readers::owner);
  IndexContent content;
  content.terms = {.key = random_hex(key_bytes),
                   .model = digest(task.model, task.weights),
                   .start = source.start,
                   .decay_centre = source.decay_centre,
                   .weight_decay = task.weight_decay,
                   .ridge = source.ridge.value_or(task.weight_decay),
                   .scale = source.scale.value_or(1),
                   .scale_rule = source.scale ? given_scale : "",
                   .loss = task.loss,
                   .classes = task.train.classes,
                   .normalization = task.normalization,
                   .data = source.data,
                   .built_examples = task.train.size(),
                   .refresh_above = source.refresh_above,
                   .retrain_above = source.retrain_above};
  const IndexReport report = linearize(task, shared, content);
  const files::path index = target.temporary_path() / index_name;
  const files::path point = target.temporary_path() / point_name(task.model);
  const files::path ledger_file = target.temporary_path() / ledger_name;
  write_index_content(index, content);
  task.model.save(point, task.weights, source.checkpoint.metadata);
  Json entry = terms_entry(content, report);
  if (source.start) entry["start"] = *source.start;
  entry["index"] = file_digest(index);
  entry["point"] = file_digest(point);
  Ledger ledger;
  ledger.append("build", entry);
  write_file_atomically(ledger_file, ledger.text());
  for (const files::path& file : {index, point, ledger_file}) protect(file);
  target.commit();
  return report;
}

ForgettingIndex::ForgettingIndex(files::path folder, Transaction::OnStep on_step)
    : folder_(checked_folder(std::move(folder))),
      lock_(folder_),
      recovery_(recover(folder_)),
      on_step_(std::move(on_step)),
      ledger_((folder_ / ledger_name).string(), read_file(folder_ / ledger_name)) {
  const Json *index = ledger_.last_with("index"), *point = ledger_.last_with("point");
  if (!index || !point) fail((folder_ / ledger_name).string(), ": names no index");
  const auto check_file = [](const files::path& path, const Json& expected) {
    if (file_digest(path) == expected.get<std::string>()) return;
    fail(path.string(), ": damaged or not of this index, its digest is not the ledger's");
  };
  check_file(folder_ / index_name, index->at("index"));
  content_ = read_index_content(folder_ / index_name);
  check_file(point_path(), point->at("point"));
  point_ = open_checkpoint(point_path());
}

files::path ForgettingIndex::point_path() const {
  const files::path script = folder_ / "point.pt";
  return files::exists(script) ? script : folder_ / "point.safetensors";
}

double ForgettingIndex::share_since_point(std::int64_t left) const {
  return 1 - static_cast<double>(left) / static_cast<double>(content_.terms.point_examples);
}

double ForgettingIndex::share_since_build(std::int64_t left) const {
  return 1 - static_cast<double>(left) / static_cast<double>(content_.terms.built_examples);
}

std::string ForgettingIndex::advice(std::int64_t left) const {
  const auto percent = [](double share) { return text(std::round(1000 * share) / 10, " %"); };
  const double total = share_since_build(left), since = share_since_point(left);
  constexpr double rounding = 1e-9;  // 1 − 57/60 is not above 0.05
  if (total > content_.terms.retrain_above + rounding) {
    return text(percent(total), " of the training set are forgotten, more than ",
                percent(content_.terms.retrain_above), ": retrain, and build a new index");
  }
  if (since > content_.terms.refresh_above + rounding) {
    return text(percent(since), " are forgotten since the point of linearisation, more than ",
                percent(content_.terms.refresh_above),
                ": linearise again (pumice index refresh), or retrain");
  }
  return "";
}

Applicability ForgettingIndex::examine(const std::vector<std::string>& cohort_ids) const {
  const std::vector<std::int64_t> cohort = rows_named(content_, cohort_ids);
  const std::vector<std::int64_t> retain = all_but(content_.examples(), cohort);
  if (retain.empty()) {
    fail("cohort: all ", content_.examples(),
         " examples that are left, must leave at least one (what then remains is the start)");
  }
  Applicability result;
  std::set<std::int64_t> kept, gone;
  for (const std::int64_t row : retain) kept.insert(content_.labels[row].item<std::int64_t>());
  for (const std::int64_t row : cohort) gone.insert(content_.labels[row].item<std::int64_t>());
  std::string lost;
  for (const std::int64_t label : gone) {
    if (kept.contains(label)) continue;
    lost += (lost.empty() ? "" : ", ") +
            content_.terms.classes.names.at(static_cast<std::size_t>(label));
  }
  result.checks.push_back(
      {.name = "classes",
       .advice = lost.empty() ? Advice::go : Advice::warning,
       .sentence = lost.empty() ? text(cohort.size(), " of ", content_.examples(),
                                       " examples are forgotten, every class keeps some")
                                : text("no retained example is left of class ", lost,
                                       "; a retrained model would hardly ever answer it")});
  std::set<std::string> pictures;
  for (const std::int64_t row : retain) {
    pictures.insert(content_.pixels[static_cast<std::size_t>(row)]);
  }
  for (const std::int64_t row : cohort) {
    result.identical_pixels += pictures.contains(content_.pixels[static_cast<std::size_t>(row)]);
  }
  result.checks.push_back(
      {.name = "duplicates",
       .advice = result.identical_pixels > 0 ? Advice::refusal : Advice::go,
       .sentence =
           result.identical_pixels > 0
               ? text(result.identical_pixels, " of ", cohort.size(),
                      " cohort examples have the same pixels as a retained one: the model keeps "
                      "learning from them; add the copies to the cohort")
               : "no retained example has the pixels of one of the cohort"});
  const std::string warning = advice(static_cast<std::int64_t>(retain.size()));
  result.checks.push_back({.name = "share forgotten",
                           .advice = warning.empty() ? Advice::go : Advice::warning,
                           .sentence = warning.empty() ? "within what was measured" : warning});
  return result;
}

IndexAnswer ForgettingIndex::answer(const std::vector<std::string>& cohort_ids, const Dataset& data,
                                    const NoiseOptions& noise, const LinearProblemOptions& options,
                                    const std::vector<Weights>& references) const {
  const auto begin = Clock::now();
  check_index_memory(content_.examples(), content_.classes(), options.memory);
  const std::vector<std::int64_t> retain =
      all_but(content_.examples(), rows_named(content_, cohort_ids));
  IndexAnswer result{with_rows(content_, retain), cohort_ids, {}};
  const Dataset examples = examples_of(result.content, data);
  const Split split = retaining_all(examples.size());
  const ForgettingTask task = task_at(content_, point_, examples, split, options);

  ShiftResult shifted{.weights = {point_.weights.layout, {}}, .summary = {}};
  ForgettingSummary& summary = shifted.summary;
  summary.ridge = content_.terms.ridge;
  summary.scale = content_.terms.scale;
  summary.scale_rule = "fixed in the index: " + content_.terms.scale_rule;
  summary.curvature = curvature_name(Curvature::identity);
  summary.linearized_at = "the point of the index";
  summary.solver = "index";
  summary.shared_kernel = true;
  const DualSolution solution = solve_index(result.content);
  if (!solution.succeeded()) {
    summary.converged = false;
    summary.explanation = solution.factorization.brief();
    result.scrubbed.summary = summary;
    return result;
  }
  summary.relative_residual = solution.relative_residual;
  summary.condition_estimate = solution.condition_estimate;
  summary.converged = solution.relative_residual < 1e-6;
  if (!summary.converged) {
    summary.explanation = text("the factorised system is solved to a relative residual of ",
                               solution.relative_residual, " only, must be < 1e-6");
  }
  const Linearization linearization(task.model, task.weights,
                                    network_inputs(examples.images, task.normalization));
  const at::Tensor wlin = linearization.vjp(-solution.coefficients).to(at::kDouble);
  const at::Tensor direction = wlin - content_.wlin;
  const at::Tensor before = task.weights.flat.to(at::kDouble);
  const at::Tensor after = before + direction * content_.terms.scale;
  shifted.weights.flat = after.to(task.weights.flat.scalar_type());
  summary.direction_norm = direction.norm().item<double>();
  summary.shift_norm = (after - before).norm().item<double>();
  summary.displacement_norm = (before - content_.centre.to(at::kDouble)).norm().item<double>();
  const double rows = static_cast<double>(result.content.residual.numel());
  const double epoch =
      3 * linearization.forward_flops() * static_cast<double>(content_.terms.built_examples);
  summary.epoch_equivalents =
      (3 * linearization.forward_flops() * static_cast<double>(examples.size()) +
       2 * rows * rows * rows / 3) /
      epoch;
  summary.seconds = seconds_since(begin);
  result.scrubbed = release(task, shifted, {.method = "consistent", .noise = noise}, references);
  return result;
}

void ForgettingIndex::change(const IndexContent& content, const Checkpoint* point,
                             const std::string& kind, Json entry,
                             const std::vector<IndexOutput>& outputs) {
  Transaction transaction(folder_, on_step_);
  for (const IndexOutput& output : outputs) output.write(transaction.stage(output.target));
  const files::path index = transaction.stage(folder_ / index_name, Replaced::wiped);
  write_index_content(index, content);
  protect(index);
  entry["index"] = file_digest(index);
  if (point) {
    const files::path file = transaction.stage(point_path(), Replaced::wiped);
    point->model->save(file, point->weights, point->metadata);
    protect(file);
    entry["point"] = file_digest(file);
  }
  Ledger ledger = ledger_;
  ledger.append(kind, entry);
  const files::path file = transaction.stage(folder_ / ledger_name);
  write_file_atomically(file, ledger.text());
  protect(file);
  transaction.commit();
  ledger_ = std::move(ledger);
  content_ = content;
  if (point) point_ = *point;
}

void ForgettingIndex::commit(const IndexAnswer& answer, const std::vector<IndexOutput>& outputs) {
  if (!answer.scrubbed.succeeded()) fail("index: the request has no result, nothing is changed");
  const std::int64_t left = answer.content.examples();
  const Json* last = ledger_.last_with("released");
  const ForgettingSummary& summary = answer.scrubbed.summary;
  change(answer.content, nullptr, "request",
         {{"request", last ? last->at("request").get<std::int64_t>() + 1 : 1},
          {"forgotten", answer.cohort_ids.size()},
          {"cohort", keyed_digest(content_.terms.key, answer.cohort_ids)},
          {"retained", left},
          {"forgotten_in_all", content_.terms.built_examples - left},
          {"share_forgotten", share_since_build(left)},
          {"share_since_point", share_since_point(left)},
          {"released", digest(*point_.model, answer.scrubbed.sample)},
          {"noise", noise_entry(summary.noise)},
          {"solver_residual", summary.relative_residual.value_or(0)}},
         outputs);
}

IndexReport ForgettingIndex::refresh(const Checkpoint& released, const Dataset& data,
                                     const LinearProblemOptions& options) {
  const Json* last = ledger_.last_with("released");
  if (!last) fail("refresh: nothing was released since the index was built");
  const std::string own = digest(*released.model, released.weights);
  if (own == content_.terms.model) {
    fail("refresh: this model is the point of linearisation already");
  }
  if (last->at("released") != own) {
    fail("refresh: this model is not what request ", last->at("request").get<std::int64_t>(),
         " released, must be the last release of the ledger");
  }
  const Dataset examples = examples_of(content_, data);
  const Split split = retaining_all(examples.size());
  ForgettingTask task = task_at(content_, released, examples, split, options);
  // Where decay pulls to the model's own weights, the old centre is the old point.
  if (content_.terms.decay_centre == "self") task.centre = released.weights.flat;
  SharedProblems shared(task);
  IndexContent content;
  content.terms = content_.terms;
  content.terms.model = own;
  const IndexReport report = linearize(task, shared, content);
  Json entry = terms_entry(content, report);
  entry["request"] = last->at("request");
  entry["wiped_point"] = content_.terms.model;
  change(content, &released, "refresh", entry, {});
  return report;
}

void ForgettingIndex::note(const std::string& kind, const Json& entry) {
  Ledger ledger = ledger_;
  ledger.append(kind, entry);
  Transaction transaction(folder_, on_step_);
  const files::path file = transaction.stage(folder_ / ledger_name);
  write_file_atomically(file, ledger.text());
  protect(file);
  transaction.commit();
  ledger_ = std::move(ledger);
}

}  // namespace pumice
