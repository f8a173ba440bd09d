// A folder that lets a model forget again and again: a request costs one factorization and one
// backward pass, whatever was asked before.
//
//   index.safetensors   kernel, residuals, digests of the examples that are left (IndexContent)
//   point.safetensors   the model at the point of linearisation (point.pt for TorchScript)
//   ledger.jsonl        what was asked and released (Ledger)
//   .lock, journal.json one process at a time; an interrupted change (Transaction)
//
// Weights after forgetting F, everything asked so far:  w + s·(wlin(D∖F) − wlin(D)), with w, s and
// wlin(D) fixed at the point. So twenty requests in turn give what one request for their union
// gives, and what `consistent` with this scale gives. Curvature: identity.
//
// w is the model before deletion: who has this folder has it. refresh() linearises at what was
// released and wipes the old point.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pumice/core/folder_lock.h"
#include "pumice/core/transaction.h"
#include "pumice/forgetting/applicability.h"
#include "pumice/forgetting/scrub.h"
#include "pumice/index/index_content.h"
#include "pumice/index/index_point.h"
#include "pumice/index/ledger.h"
#include "pumice/model/checkpoint.h"

namespace pumice {

// What an index is made from.
struct IndexSource {
  const ForgettingTask& task;    // all of D is retained, the cohort is empty
  const Checkpoint& checkpoint;  // the task's model and weights, with its metadata
  DataRequest data;
  std::string decay_centre = "start";     // what task.centre is: "start", "zero" or "self"
  std::optional<std::string> start = {};  // digest of w0
  std::optional<double> ridge = {};       // default: the task's weight decay
  std::optional<double> scale = {};       // default: the rule without unseen examples
  double refresh_above = 0.05;
  double retrain_above = 0.2;
};

// Makes the folder, whole or not at all. Throws Error if it exists, if the kernel would not fit
// into task.linear.memory (default: half of what is free) when a request comes, or if the solve
// fails. Cost: the kernel, one tangent pass, two backward passes, one factorization.
IndexReport build_index(const std::filesystem::path& folder, const IndexSource& source,
                        SharedProblems& shared);

// A file that is to appear together with the change of the index: `write` gets a temporary path.
struct IndexOutput {
  std::filesystem::path target;
  std::function<void(const std::filesystem::path& temporary)> write;
};

// The answer to a request; nothing has changed yet.
struct IndexAnswer {
  IndexContent content;  // without the cohort's rows
  std::vector<std::string> cohort_ids;
  Scrubbed scrubbed;
};

class ForgettingIndex {
 public:
  // Takes the lock, completes or takes back what an interrupted change left, checks the chain of
  // the ledger and the digests of both files. Throws Error for whatever does not fit. `on_step`:
  // see Transaction, for tests.
  explicit ForgettingIndex(std::filesystem::path folder, Transaction::OnStep on_step = {});

  const std::filesystem::path& folder() const { return folder_; }
  const IndexContent& content() const { return content_; }
  const Ledger& ledger() const { return ledger_; }
  const Checkpoint& point() const { return point_; }
  std::filesystem::path point_path() const;
  Recovery recovery() const { return recovery_; }

  double share_since_point(std::int64_t left) const;  // 1 − left/N at the point
  double share_since_build(std::int64_t left) const;
  // What to do when this many examples are left; "" if nothing.
  std::string advice(std::int64_t left) const;

  // Before any work, from what the index holds: classes that vanish, copies of the cohort among
  // those who stay (refusal), shares above the thresholds. Throws Error if an id is not in the
  // index or if nobody would be left.
  Applicability examine(const std::vector<std::string>& cohort_ids) const;

  // `data` must hold every example that stays; the cohort's need not be there any more. Numerics
  // that did not succeed are told by the summary. Cost: one factorization, one backward pass over
  // what stays; with noise, the Fisher information.
  IndexAnswer answer(const std::vector<std::string>& cohort_ids, const Dataset& data,
                     const NoiseOptions& noise, const LinearProblemOptions& options = {},
                     const std::vector<Weights>& references = {}) const;

  // The rows leave the index, the ledger gets its entry, and the outputs appear: together or not at
  // all. The old file is wiped.
  void commit(const IndexAnswer& answer, const std::vector<IndexOutput>& outputs);

  // Linearises again at `released`, which must be the last release in the ledger, with the retained
  // set as the whole training set; the old point and the old index are wiped. Cost: as build_index.
  IndexReport refresh(const Checkpoint& released, const Dataset& data,
                      const LinearProblemOptions& options = {});

  // Adds an entry to the ledger alone.
  void note(const std::string& kind, const Ledger::Json& entry);

 private:
  void change(const IndexContent& content, const Checkpoint* point, const std::string& kind,
              Ledger::Json entry, const std::vector<IndexOutput>& outputs);

  std::filesystem::path folder_;
  FolderLock lock_;
  Recovery recovery_;
  Transaction::OnStep on_step_;
  Ledger ledger_;
  IndexContent content_;
  Checkpoint point_;
};

}  // namespace pumice
