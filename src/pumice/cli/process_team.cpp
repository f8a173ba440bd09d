#include "pumice/cli/process_team.h"

#include "pumice/core/error.h"
#include "pumice/core/memory.h"

namespace pumice::cli {

void share_work(ProcessGroup& group, LinearProblemOptions& options) {
  if (group.alone()) return;
  options.shard = {.index = group.rank(), .count = group.size()};
  options.sum_over_processes = [&group](at::Tensor& values) { group.sum(values); };
  options.gather_tiles = [&group](const at::Tensor& own, const std::vector<at::Tensor>& places) {
    group.gather(own, places);
  };
  if (!options.memory) options.memory = available_memory() / 2 / group.sharing_memory();
}

std::filesystem::path checkpoint_path(const ForgetFlags& flags) {
  if (!flags.checkpoint.empty()) return flags.checkpoint;
  std::filesystem::path out = flags.out;
  if (!out.has_filename()) out = out.parent_path();  // a folder, with its slash
  return out.string() + ".checkpoint";
}

std::string kept_checkpoint_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  return text("; the same command goes on from ", path.string(),
              ", which tells of the cohort: remove it if you do not go on");
}

}  // namespace pumice::cli
