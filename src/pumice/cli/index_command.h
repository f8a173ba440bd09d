// The subcommands of pumice index.
#pragma once

#include <CLI/CLI.hpp>

#include "pumice/index/forgetting_index.h"

namespace pumice::cli {

void add_index_build(CLI::App& index);
void add_index_refresh(CLI::App& index);
void add_index_show(CLI::App& index);
void add_index_verify(CLI::App& index);
void add_index_bound(CLI::App& index);

// What everyone who handles this index must know: whose weights are in it. One line.
const char* sensitivity(const ForgettingIndex& index);

}  // namespace pumice::cli
