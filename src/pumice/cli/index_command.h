// The subcommands of pumice index.
#pragma once

#include <CLI/CLI.hpp>

namespace pumice::cli {

void add_index_build(CLI::App& index);
void add_index_refresh(CLI::App& index);
void add_index_show(CLI::App& index);
void add_index_verify(CLI::App& index);
void add_index_bound(CLI::App& index);

// What everyone who handles an index must know.
extern const char* const index_warning;

}  // namespace pumice::cli
