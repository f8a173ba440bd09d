#include "pumice/cli/indexed_forget.h"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "pumice/cli/command.h"
#include "pumice/cli/error_table.h"
#include "pumice/cli/index_data.h"
#include "pumice/cli/loaded_model.h"
#include "pumice/cli/progress_bars.h"
#include "pumice/core/memory.h"
#include "pumice/core/revision.h"
#include "pumice/data/split.h"
#include "pumice/index/forgetting_index.h"
#include "pumice/record/record.h"

namespace pumice::cli {
namespace {

using Json = nlohmann::json;
namespace files = std::filesystem;

void check_outputs(const ForgetFlags& flags, const ForgettingIndex& index) {
  const std::string extension = index.point_path().extension().string();
  if (files::path(flags.out).extension() != extension) {
    throw UsageError(
        text("--out: '", flags.out, "', must end in ", extension, " as the indexed model does"));
  }
  for (const std::string& target : {flags.out, flags.distribution, flags.record}) {
    if (target.empty()) continue;
    if (files::exists(target) && !flags.force) {
      fail(target, ": exists already, must not be overwritten without --force");
    }
    std::error_code missing;
    for (const std::string& source : {flags.model, flags.init, flags.cohort}) {
      if (!source.empty() && files::equivalent(target, source, missing)) {
        throw UsageError(text("'", target, "': is an input of this command, must be another file"));
      }
    }
    const files::path folder = files::absolute(target).parent_path();
    if (files::equivalent(folder, index.folder(), missing)) {
      throw UsageError(text("'", target, "': is inside the index, must be elsewhere"));
    }
  }
}

// --model and --init need not be given; if they are, they must be the index's.
void check_models(const ForgetFlags& flags, const ForgettingIndex& index) {
  const auto check = [](const std::string& file, const char* what, const std::string& expected) {
    const Checkpoint checkpoint = open_checkpoint(file);
    if (digest(*checkpoint.model, checkpoint.weights) == expected) return;
    fail(file, ": is not the ", what, " of this index");
  };
  const IndexTerms& terms = index.content().terms;
  if (!flags.model.empty()) check(flags.model, "model", terms.model);
  if (!flags.init.empty()) check(flags.init, "start", terms.start.value_or("none"));
}

std::vector<Weights> open_references(const ForgetFlags& flags, const ForgettingIndex& index) {
  std::vector<Weights> references;
  for (const std::string& file : flags.references) {
    const Checkpoint reference = open_checkpoint(file);
    check_same_network(file, reference, index.point().weights);
    references.push_back(reference.weights);
  }
  return references;
}

// Those of the cohort that are still in the data.
Dataset cohort_in(const Dataset& data, const std::vector<std::string>& ids) {
  const std::unordered_set<std::string> wanted(ids.begin(), ids.end());
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    if (wanted.contains(data.ids[static_cast<std::size_t>(i)])) positions.push_back(i);
  }
  return positions.empty() ? Dataset{} : subset(data, positions);
}

Metadata released_metadata(const ForgettingIndex& index, const IndexAnswer& answer,
                           const Dataset& retained) {
  const std::int64_t built = index.content().terms.built_examples;
  Metadata metadata = index.point().metadata;
  metadata["created_by"] = text("pumice ", version());
  metadata["revision"] = revision();
  metadata["forgotten"] =
      text(built - answer.content.examples(), " of ", built, " training examples");
  metadata["forgetting"] = text("consistent, from an index, ",
                                answer.scrubbed.summary.noise ? "with noise" : "no noise");
  // The whole training set's would let anyone who has the data confirm who was in it.
  metadata["data_digest"] = digest(retained);
  return metadata;
}

struct Judged {
  Errors before, after;
};

Json make_record(const ForgetFlags& flags, const ForgettingIndex& index, const IndexAnswer& answer,
                 const IndexData& data, const Dataset& retained, const Applicability& applicability,
                 const Judged& errors, double seconds) {
  const IndexTerms& terms = index.content().terms;
  Json method = to_json(answer.scrubbed.summary);
  method["model"] = digest(*index.point().model, answer.scrubbed.sample);
  method["errors"] = errors_json(errors.after);
  Json content{{"model", terms.model},
               {"data", digest(retained)},
               {"data_request", to_json(data.request)},
               {"examples", index.content().examples()},
               {"cohort_size", answer.cohort_ids.size()},
               {"cohort_digest", keyed_digest(terms.key, answer.cohort_ids)},
               {"weight_decay", terms.weight_decay},
               {"loss", loss_name(terms.loss)},
               {"decay_centre", terms.decay_centre},
               {"threads", at::get_num_threads()},
               {"errors_before", errors_json(errors.before)},
               {"applicability", to_json(applicability)},
               {"seconds", seconds},
               {"index",
                {{"built_examples", terms.built_examples},
                 {"retained", answer.content.examples()},
                 {"share_forgotten", index.share_since_build(answer.content.examples())},
                 {"share_since_point", index.share_since_point(answer.content.examples())}}},
               {"methods", Json::array({method})}};
  if (terms.start) content["start"] = *terms.start;
  if (flags.noise.seed) content["noise_seed"] = *flags.noise.seed;
  if (flags.record_ids) content["cohort_ids"] = answer.cohort_ids;
  return content;
}

void print_result(const ForgetFlags& flags, const ForgettingIndex& index,
                  const ForgettingSummary& summary, const Judged& errors) {
  print_errors_head();
  print_errors("point", errors.before);
  print_errors("released", errors.after);
  std::printf("%s", summary.full().c_str());
  const std::int64_t left = index.content().examples();
  std::printf(
      "Index: %lld examples are left; %.2f %% forgotten since the training, %.2f %% since "
      "the point of linearisation\n",
      static_cast<long long>(left), 100 * index.share_since_build(left),
      100 * index.share_since_point(left));
  const std::string advice = index.advice(left);
  if (!advice.empty()) std::printf("Advice: %s\n", advice.c_str());
  if (flags.noise.scale == 0) {
    std::printf("Without noise no bound on what the weights still tell holds.\n");
  }
  if (flags.noise.seed) {
    std::printf(
        "--noise-seed: the noise can be repeated and subtracted, this release is not private.\n");
  }
  std::printf("Written: %s\n", flags.out.c_str());
  std::printf(
      "The cohort is still in: %s (the weights before deletion, until 'pumice index "
      "refresh'), %s",
      index.point_path().c_str(), flags.cohort.c_str());
  for (const std::string& file : {flags.model, flags.distribution}) {
    if (!file.empty()) std::printf(", %s", file.c_str());
  }
  std::printf("; and in the data, logs and checkpoints of its training.\n");
}

}  // namespace

void run_indexed_forget(const CLI::App& command, const ForgetFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  ForgettingIndex index(flags.index);
  check_outputs(flags, index);
  check_models(flags, index);
  const std::vector<Weights> references = open_references(flags, index);
  const std::vector<std::string> ids = read_ids(flags.cohort);
  const Applicability applicability = index.examine(ids);
  if (!flags.json) std::printf("Examination\n%s", applicability.text().c_str());
  if (applicability.advice() == Advice::refusal && !flags.force) {
    fail("examination: refused for the reason above, nothing was changed; --force goes on anyway");
  }
  const IndexData data = load_index_data(command, flags.data, index.content());
  ProgressBars bars(flags.quiet || flags.json);
  LinearProblemOptions options{.progress = bars.teller()};
  if (flags.memory) options.memory = parse_bytes(*flags.memory);
  const IndexAnswer answer = index.answer(ids, data.train, flags.noise, options, references);
  bars.finish();
  const ForgettingSummary& summary = answer.scrubbed.summary;
  if (!answer.scrubbed.succeeded() || (!summary.converged && !flags.accept_unconverged)) {
    fail("not converged, nothing was changed (--accept-unconverged goes on): ",
         summary.explanation);
  }
  const Dataset retained = examples_of(answer.content, data.train);
  const Dataset cohort = cohort_in(data.train, ids);
  const auto errors_at = [&](const Weights& weights) {
    return judge(*index.point().model, weights, index.content().terms.normalization, cohort,
                 retained, data.test);
  };
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Judged errors{errors_at(index.point().weights), errors_at(answer.scrubbed.sample)};
  const Record record{
      .kind = "forget",
      .content = make_record(flags, index, answer, data, retained, applicability, errors, seconds)};
  std::vector<IndexOutput> outputs{{flags.out, [&](const files::path& path) {
                                      index.point().model->save(
                                          path, answer.scrubbed.sample,
                                          released_metadata(index, answer, retained));
                                    }}};
  if (!flags.distribution.empty()) {
    outputs.push_back({flags.distribution, [&](const files::path& path) {
                         write_distribution(path, answer.scrubbed.distribution);
                       }});
  }
  if (!flags.record.empty()) {
    outputs.push_back({flags.record, [&](const files::path& path) { write_record(path, record); }});
  }
  index.commit(answer, outputs);
  if (flags.json) {
    std::printf("%s\n", to_json(record).dump(2).c_str());
  } else {
    print_result(flags, index, summary, errors);
  }
}

}  // namespace pumice::cli
