#include "pumice/cli/index_data.h"

#include <unordered_set>

#include "pumice/cli/command.h"

namespace pumice::cli {
namespace {

bool holds_all(const IndexContent& content, const Dataset& data) {
  std::unordered_set<std::string> found;
  for (const std::string& id : data.ids) found.insert(id_digest(content.terms.key, id));
  for (const std::string& id : content.ids) {
    if (!found.contains(id)) return false;
  }
  return true;
}

}  // namespace

IndexData load_index_data(const CLI::App& command, const DataRequest& given,
                          const IndexContent& content) {
  DataRequest request = inherit_data_options(command, given, content.terms.data);
  try {
    Selection selection = load(request);
    if (holds_all(content, selection.train)) {
      return {request, std::move(selection.train), std::move(selection.test)};
    }
  } catch (const Error&) {
    // Too few are left to draw from, or something worse: then it is told by what follows.
  }
  DataRequest everything = request;
  everything.selection.per_class.reset();
  everything.selection.validation_per_class = 0;
  Selection selection = load(everything);
  return {request, std::move(selection.train), std::move(selection.test)};
}

}  // namespace pumice::cli
