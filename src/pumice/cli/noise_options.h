// What --noise is shaped like: for pumice forget, which adds it, and pumice audit, which judges it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "pumice/forgetting/noise.h"

namespace pumice::cli {

// --noise with its own help text, --noise-shape, --noise-epsilon and --noise-cap.
void add_noise_shape_options(CLI::App& command, NoiseOptions& noise,
                             std::optional<std::string>& shape, const std::string& help_of_scale,
                             const std::string& group);

}  // namespace pumice::cli
