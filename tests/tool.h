// The command-line tool under test, and the body that most of its tests start from.
#pragma once

#include <string>

#include "command.h"

namespace pumice::testing {

inline const std::string body = PUMICE_SOURCE_DIR "/weights/fashion-mnist-allcnn-w0.25.safetensors";

// `arguments` is the rest of the line for the shell.
inline CommandResult pumice(const std::string& arguments) {
  return run_command(PUMICE_TOOL " " + arguments);
}

}  // namespace pumice::testing
