// pumice forget --index: a deletion request to an index.
#pragma once

#include "pumice/cli/forget_options.h"

namespace pumice::cli {

// The flags are checked. Throws Error, nothing changed, for whatever does not fit.
void run_indexed_forget(const CLI::App& command, const ForgetFlags& flags);

}  // namespace pumice::cli
