// A small trained network with an index, in a folder of its own.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "command.h"
#include "linearization/small_models.h"
#include "pumice/core/file_digest.h"
#include "pumice/index/forgetting_index.h"
#include "pumice/model/training.h"
#include "pumice/model/zoo.h"
#include "small_data.h"
#include "temporary_folder.h"

namespace pumice::testing {

// 60 examples of three classes, an MLP with a few hundred weights, trained for a moment from w0.
struct SmallIndex {
  TemporaryFolder home;
  Dataset data = blob_dataset(20);
  Normalization normalization = measure_normalization(data);
  Checkpoint checkpoint;  // w(D)
  at::Tensor start;       // w0
  double weight_decay = 0.05;
  Split split;  // everything is retained
  std::filesystem::path folder = home / "index";

  explicit SmallIndex(std::optional<double> scale = {}) {
    const auto network = std::make_shared<Network>(Architecture{
        .name = "mlp", .width = 0.25, .input_channels = 1, .classes = 3, .image_size = 8});
    const Weights fresh = fresh_weights(*network, 1);
    start = fresh.flat.clone();
    TrainingOptions recipe = finetuning_recipe();
    recipe.epochs = 10;
    recipe.weight_decay = weight_decay;
    Training training(*network, fresh, {data, {}, false}, normalization, recipe);
    train_to_end(training, recipe, {});
    checkpoint = {network, training.state().weights,
                  architecture_metadata(network->architecture())};
    for (std::int64_t i = 0; i < data.size(); ++i) split.retain.push_back(i);
    const ForgettingTask all = task(split);
    SharedProblems shared(all);
    build_index(folder, {.task = all, .checkpoint = checkpoint, .data = {}, .scale = scale},
                shared);
  }

  // The request as `consistent` sees it. `part` must outlive the task.
  ForgettingTask task(const Split& part) const {
    return {.model = *checkpoint.model,
            .weights = checkpoint.weights,
            .centre = start,
            .start = {},
            .train = data,
            .split = part,
            .normalization = normalization,
            .weight_decay = weight_decay,
            .recipe = {}};
  }
  Split without(const std::vector<std::int64_t>& positions) const {
    Split part;
    part.cohort = positions;
    std::sort(part.cohort.begin(), part.cohort.end());
    for (std::int64_t i = 0; i < data.size(); ++i) {
      if (!std::binary_search(part.cohort.begin(), part.cohort.end(), i)) part.retain.push_back(i);
    }
    return part;
  }
  std::vector<std::string> ids(const std::vector<std::int64_t>& positions) const {
    std::vector<std::string> names;
    for (const std::int64_t position : positions) {
      names.push_back(data.ids[static_cast<std::size_t>(position)]);
    }
    return names;
  }
  // One whole request; the release goes to `home / name`.
  Weights request(const std::vector<std::int64_t>& positions, const std::string& name = "released",
                  const NoiseOptions& noise = {}, const Transaction::OnStep& on_step = {}) const {
    ForgettingIndex index(folder, on_step);
    const IndexAnswer answer = index.answer(ids(positions), data, noise);
    index.commit(answer, {{home / name, [&](const std::filesystem::path& path) {
                             checkpoint.model->save(path, answer.scrubbed.sample,
                                                    checkpoint.metadata);
                           }}});
    return answer.scrubbed.sample;
  }
  // Every file of the home, except for the lock, with the digest of its bytes.
  std::map<std::string, std::string> state() const {
    std::map<std::string, std::string> found;
    for (const auto& file : std::filesystem::recursive_directory_iterator(home.path())) {
      if (file.is_regular_file() && file.path().filename() != ".lock") {
        found[std::filesystem::relative(file.path(), home.path()).string()] =
            file_digest(file.path());
      }
    }
    return found;
  }
};

// All bytes of the folder's files.
inline std::string bytes_in(const std::filesystem::path& folder) {
  std::string bytes;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.is_regular_file()) bytes += content_of(file.path()) + "\n";
  }
  return bytes;
}

template <typename Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

}  // namespace pumice::testing
