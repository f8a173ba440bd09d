#include "pumice/model/training_run.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "pumice/core/atomic_file.h"
#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/core/interrupt.h"
#include "pumice/model/checkpoint.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* buffer_prefix = "buffer.";

fs::path beside(const fs::path& out, const std::string& ending) {
  return out.parent_path() / (out.stem().string() + ending);
}

// What a state depends on, in words, so that a mismatch can be named.
Json fingerprint(const TrainingSet& set, const Normalization& normalization,
                 const TrainingRunOptions& options, const std::string& init_digest) {
  Digest excluded;
  for (const std::int64_t position : set.excluded) {
    excluded.add_number(static_cast<std::uint64_t>(position));
  }
  return {{"recipe", to_json(options.training)},
          {"data", digest(set.dataset)},
          {"excluded examples", excluded.hex()},
          {"replace", set.replace},
          {"start", init_digest},
          {"number of threads", at::get_num_threads()},
          {"normalisation", {normalization.mean, normalization.deviation}}};
}

void write_state(const fs::path& path, const Model& model, const TrainingState& state,
                 const Json& run) {
  Json history = Json::array();
  for (const EpochReport& report : state.history) history.push_back(to_json(report));
  TensorFile file{.tensors = {{"weights", state.weights.flat}, {"velocity", state.velocity}},
                  .metadata = {{"history", history.dump()}, {"run", run.dump()}}};
  for (const auto& [name, tensor] : model.buffers())
    file.tensors.emplace_back(buffer_prefix + name, tensor);
  write_safetensors(path, file);
}

TrainingState read_state(const fs::path& path, Model& model, const Weights& start,
                         const Json& run) {
  const TensorFile file = read_safetensors(path);
  TrainingState state{start, {}, {}};
  try {
    const Json stored = Json::parse(file.metadata.at("run"));
    for (const auto& [key, value] : run.items()) {
      if (!stored.contains(key) || stored.at(key) != value) {
        fail(path.string(), ": the interrupted run had another ", key,
             "; give the same options, or start over with --force");
      }
    }
    for (const Json& report : Json::parse(file.metadata.at("history"))) {
      state.history.push_back(epoch_report_from_json(report));
    }
  } catch (const Json::exception&) {
    fail(path.string(), ": is damaged; start over with --force");
  } catch (const std::out_of_range&) {
    fail(path.string(), ": is not the state of a training; start over with --force");
  }
  std::vector<NamedTensor> buffers;
  for (const auto& [name, tensor] : file.tensors) {
    if (name == "weights") state.weights.flat = tensor;
    if (name == "velocity") state.velocity = tensor;
    if (name.starts_with(buffer_prefix)) {
      buffers.emplace_back(name.substr(std::string(buffer_prefix).size()), tensor);
    }
  }
  if (!state.velocity.defined() || state.velocity.sizes() != start.flat.sizes() ||
      state.weights.flat.sizes() != start.flat.sizes()) {
    fail(path.string(), ": does not fit this model; start over with --force");
  }
  if (auto* network = dynamic_cast<Network*>(&model)) network->set_buffers(buffers);
  return state;
}

void write_log(const fs::path& path, const std::vector<EpochReport>& history) {
  std::string lines;
  for (const EpochReport& report : history) lines += to_json(report).dump() + "\n";
  write_file_atomically(path, lines);
}

std::string percent(double share) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f %%", 100 * share);
  return buffer;
}

std::string epoch_line(const EpochReport& report) {
  char loss[32];
  std::snprintf(loss, sizeof loss, "%.4f", report.loss);
  return text("epoch ", report.epoch, ": loss ", loss, ", error ", percent(report.error),
              report.training_error ? ", training error " + percent(*report.training_error) : "",
              ", ", duration_text(report.seconds));
}

// True if `out` is the result of just this run. Which examples were left out is not stored, so a
// run that leaves some out cannot be recognised.
bool is_result_of(const fs::path& out, const Metadata& wanted) {
  if (wanted.contains("excluded")) return false;
  const Metadata found = open_checkpoint(out).metadata;
  for (const char* key : {"recipe", "init_digest", "data_digest", "excluded", "mean", "std"}) {
    const auto expected = wanted.find(key);
    const auto stored = found.find(key);
    if ((expected == wanted.end()) != (stored == found.end())) return false;
    if (expected != wanted.end() && expected->second != stored->second) return false;
  }
  return true;
}

void refuse_conflicts(const TrainingRunOptions& options) {
  if (options.force || options.resume) return;
  if (fs::exists(options.out)) {
    fail(options.out.string(), ": exists already; give another --out, or --force to overwrite it");
  }
  if (fs::exists(resume_path(options.out))) {
    fail(resume_path(options.out).string(),
         ": an interrupted run is here; continue it with --resume, or start over with --force");
  }
}

}  // namespace

fs::path start_path(const fs::path& out) {
  return beside(out, ".start" + out.extension().string());
}
fs::path log_path(const fs::path& out) {
  return beside(out, ".log.jsonl");
}
fs::path resume_path(const fs::path& out) {
  return beside(out, ".resume.safetensors");
}
fs::path epoch_path(const fs::path& out, std::int64_t epoch) {
  char name[32];
  std::snprintf(name, sizeof name, "epoch-%04lld", static_cast<long long>(epoch));
  return beside(out, ".epochs") / (name + out.extension().string());
}

TrainingRunSummary run_training(Model& model, Weights& weights, const TrainingSet& set,
                                const Normalization& normalization,
                                const TrainingRunOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const fs::path& out = options.out;
  refuse_conflicts(options);
  Training training(model, weights, set, normalization, options.training);

  Metadata metadata = options.metadata;
  metadata["recipe"] = to_json(options.training).dump();
  metadata["init_digest"] = digest(model, weights);
  TrainingRunSummary summary;
  summary.files = {out, start_path(out), log_path(out)};
  const Json run = fingerprint(set, normalization, options, metadata["init_digest"]);

  const bool resuming = options.resume && fs::exists(resume_path(out));
  if (options.resume && !resuming && fs::exists(out)) {
    if (!is_result_of(out, metadata)) {
      fail(out.string(),
           ": exists, and is not known to be the result of this very run; give another --out, "
           "or --force in place of --resume");
    }
    summary.status = TrainingRunStatus::already_finished;
    return summary;
  }
  if (options.force) {
    // Nothing of the run before may be taken for this one's.
    fs::remove(out);
    fs::remove(resume_path(out));
    fs::remove_all(epoch_path(out, 1).parent_path());
  }
  // Also when resuming (before the state brings its own statistics): the start must be this run's.
  Metadata start_metadata = metadata;
  start_metadata["start"] = "true";
  model.save(start_path(out), weights, start_metadata);
  if (resuming) {
    training.restore(read_state(resume_path(out), model, weights, run));
    summary.resumed_after = static_cast<std::int64_t>(training.state().history.size());
  }
  if (options.keep_epochs) fs::create_directories(epoch_path(out, 1).parent_path());
  // A kill between state and log may have left the log one line short.
  write_log(log_path(out), training.state().history);

  const std::int64_t examples = training.examples_per_epoch();
  Progress progress("training", options.training.epochs * examples, options.progress,
                    summary.resumed_after * examples);
  if (resuming) progress.line(text("resuming after epoch ", summary.resumed_after));
  while (!training.finished()) {
    const auto done_before = static_cast<std::int64_t>(training.state().history.size()) * examples;
    const auto report = training.run_epoch([&](std::int64_t done) {
      progress.update(done_before + done, text("epoch ", training.state().history.size() + 1,
                                               " of at most ", options.training.epochs));
      if (options.observer) {
        options.observer(static_cast<double>(done_before + done) /
                         static_cast<double>(options.training.epochs * examples));
      }
      return !interrupted();
    });
    if (!report) {
      summary.status = TrainingRunStatus::interrupted;
      break;
    }
    if (options.keep_epochs)
      model.save(epoch_path(out, report->epoch), training.state().weights, metadata);
    write_state(resume_path(out), model, training.state(), run);
    write_log(log_path(out), training.state().history);
    progress.line(epoch_line(*report));
  }
  progress.finish();

  summary.history = training.state().history;
  weights = training.state().weights;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (summary.status == TrainingRunStatus::interrupted) return summary;
  metadata["epochs_run"] = std::to_string(summary.history.size());
  model.save(out, weights, metadata);
  fs::remove(resume_path(out));
  return summary;
}

}  // namespace pumice
