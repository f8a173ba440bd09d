// The data of an index: whoever was forgotten may be gone from it.
#pragma once

#include <CLI/CLI.hpp>

#include "pumice/data/data_request.h"
#include "pumice/index/index_content.h"

namespace pumice::cli {

struct IndexData {
  DataRequest request;
  Dataset train;  // may hold more than the index
  Dataset test;
};

// As the index says, except for what was given on the command line. A selection draws its examples
// from those that are there, so that without the forgotten ones it would draw others: then all of
// the data are loaded, and the index picks its own.
IndexData load_index_data(const CLI::App& command, const DataRequest& given,
                          const IndexContent& content);

}  // namespace pumice::cli
