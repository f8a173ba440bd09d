#include "pumice/cli/noise_options.h"

namespace pumice::cli {

void add_noise_shape_options(CLI::App& command, NoiseOptions& noise,
                             std::optional<std::string>& shape, const std::string& help_of_scale,
                             const std::string& group) {
  command.add_option("--noise", noise.scale, help_of_scale)
      ->capture_default_str()
      ->type_name("A")
      ->group(group);
  command.add_option("--noise-shape", shape, "fisher (default) or paper")
      ->check(CLI::IsMember({"fisher", "paper"}))
      ->group(group);
  command.add_option("--noise-epsilon", noise.epsilon, "fisher: added to the Fisher information")
      ->capture_default_str()
      ->group(group);
  command.add_option("--noise-cap", noise.cap, "fisher: largest 1/(F + epsilon)")
      ->type_name("C")
      ->group(group);
}

}  // namespace pumice::cli
