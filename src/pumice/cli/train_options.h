// The options of pumice train.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "pumice/data/data_request.h"

namespace pumice::cli {

// Everything that was said on the command line; what was not said stays empty.
struct TrainFlags {
  std::string out;
  std::string init;
  std::string architecture = "allcnn";
  double width = 1.0;
  std::string preset;
  std::string head = "auto";
  DataRequest data;
  std::optional<std::int64_t> epochs, batch_size, after_zero_error;
  std::optional<double> rate, momentum, weight_decay;
  std::optional<std::string> decay_centre, schedule, batch_norm, augment;
  bool no_early_stop = false;
  std::optional<std::uint64_t> seed, order_seed, data_seed;
  std::string exclude, forget_class;
  std::optional<std::int64_t> forget_count;
  bool replace = false;
  bool resume = false, force = false, keep_epochs = false, quiet = false, json = false;
  std::optional<int> threads;
};

// Declares all of them, in the order of --help: start, data, recipe, leaving examples out, run.
// `flags` is written when the command line is parsed and must live until then.
void add_train_options(CLI::App& command, TrainFlags& flags);

}  // namespace pumice::cli
