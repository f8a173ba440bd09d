#include "pumice/forgetting/solve_checkpoint.h"

#include <algorithm>
#include <charconv>

#include "pumice/core/error.h"
#include "pumice/model/safetensors.h"

namespace pumice {
namespace {

const char* const kind = "solve checkpoint";

std::int64_t whole_number(const std::string& text) {
  std::int64_t value = -1;
  const auto [end, reason] = std::from_chars(text.data(), text.data() + text.size(), value);
  return reason == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

SolveCheckpoint::SolveCheckpoint(SolveCheckpointOptions options) : options_(std::move(options)) {
  if (!options_.path.empty()) remove_leftovers(options_.path);
  if (!options_.ignore_existing && exists()) read();
}

bool SolveCheckpoint::exists() const {
  return !options_.path.empty() && std::filesystem::exists(options_.path);
}

void SolveCheckpoint::read() {
  const std::string name = options_.path.string();
  const TensorFile file = read_safetensors(options_.path);
  const auto said = [&](const std::string& key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  if (said("pumice") != kind) fail(name, ": is no checkpoint of a solve, must be removed first");
  if (said("binding") != options_.binding) {
    fail(name,
         ": is the checkpoint of another request, model or data, must be removed (or name another "
         "with --checkpoint; --force overwrites it)");
  }
  for (const auto& [solve, solution] : file.tensors) {
    const std::int64_t iteration = whole_number(said("iteration of " + solve));
    if (iteration < 0 || solution.dim() != 1 || !solution.is_floating_point() ||
        !solution.isfinite().all().item<bool>()) {
      fail(name, ": '", solve,
           "' is damaged, must be finite numbers and their iteration; remove "
           "the file to begin anew");
    }
    iterates_.push_back({.solve = solve, .iteration = iteration, .solution = solution});
  }
}

SolveIterate* SolveCheckpoint::find(const std::string& solve) {
  const auto found = std::find_if(iterates_.begin(), iterates_.end(),
                                  [&](const SolveIterate& kept) { return kept.solve == solve; });
  return found == iterates_.end() ? nullptr : &*found;
}

void SolveCheckpoint::save(const SolveIterate& iterate) {
  if (options_.path.empty()) return;
  const SolveIterate copy{.solve = iterate.solve,
                          .iteration = iterate.iteration,
                          .solution = iterate.solution.detach().clone()};
  if (SolveIterate* kept = find(iterate.solve)) {
    *kept = copy;
  } else {
    iterates_.push_back(copy);
  }
  if (std::chrono::steady_clock::now() - written_ >= options_.every) write();
}

std::optional<SolveIterate> SolveCheckpoint::restore(const std::string& solve) {
  const SolveIterate* kept = find(solve);
  if (!kept) return std::nullopt;
  restored_ += kept->iteration;
  return *kept;
}

void SolveCheckpoint::write() {
  TensorFile file;
  file.metadata = {{"pumice", kind},
                   {"binding", options_.binding},
                   {"private", "true: tells of the cohort, must not be released"}};
  for (const SolveIterate& iterate : iterates_) {
    file.tensors.emplace_back(iterate.solve, iterate.solution.contiguous());
    file.metadata["iteration of " + iterate.solve] = std::to_string(iterate.iteration);
  }
  // A folder for several methods is made at the end; what lies beside it cannot wait for that.
  std::error_code told_by_the_write;
  std::filesystem::create_directories(options_.path.parent_path(), told_by_the_write);
  write_safetensors(options_.path, file, Readers::owner);
  written_ = std::chrono::steady_clock::now();
}

void SolveCheckpoint::keep() {
  if (!options_.path.empty() && !iterates_.empty()) write();
}

void SolveCheckpoint::remove() {
  std::error_code reason;
  std::filesystem::remove(options_.path, reason);
  if (reason) {
    fail(options_.path.string(), ": cannot be removed, ", reason.message(),
         "; it tells of the cohort, remove it");
  }
}

}  // namespace pumice
