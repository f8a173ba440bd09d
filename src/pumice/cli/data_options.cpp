#include "pumice/cli/command.h"

namespace pumice::cli {

void add_data_options(CLI::App& command, DataRequest& request, bool with_spec) {
  if (with_spec) {
    command
        .add_option("--data", request.spec, "Data set: NAME (see 'pumice data list') or kind:PATH")
        ->type_name("SPEC")
        ->capture_default_str()
        ->group("Data");
  }
  command
      .add_option("--test", request.test_spec, "Where test examples come from, if not from --data")
      ->type_name("SPEC")
      ->group("Data");
  command
      .add_option("--classes", request.selection.classes,
                  "Classes to use, as labels or names: 0-4, 0,2,5-7, cat,dog (default: all)")
      ->type_name("LIST")
      ->group("Data");
  command
      .add_option("--per-class", request.selection.per_class,
                  "Training examples drawn from each class (default: all)")
      ->type_name("N")
      ->group("Data");
  command
      .add_option("--test-per-class", request.selection.test_per_class,
                  "Test examples drawn from each class (default: all)")
      ->type_name("N")
      ->group("Data");
  command
      .add_option("--validation-per-class", request.selection.validation_per_class,
                  "Validation examples drawn from each class of the training part (default: 0)")
      ->type_name("N")
      ->group("Data");
  command
      .add_option("--image-size", request.source.image_size,
                  "Resize images to N×N (folders: 32 unless told)")
      ->type_name("N")
      ->check(CLI::Range(4, 1024))
      ->group("Data");
  command.add_option("--channels", request.source.channels, "1 for grey, 3 for colour")
      ->check(CLI::IsMember({1, 3}))
      ->group("Data");
}

void add_normalization_options(CLI::App& command, DataRequest& request) {
  const char* where = "Data";
  CLI::Option* mean =
      command
          .add_option("--mean", request.normalization.mean,
                      "Network inputs are (pixel/255 - mean)/std: one number, or one a channel "
                      "(default: what the model says, else measured on the training images)")
          ->type_name("M")
          ->delimiter(',')
          ->group(where);
  CLI::Option* deviation =
      command.add_option("--std", request.normalization.deviation, "Goes with --mean")
          ->type_name("S")
          ->delimiter(',')
          ->group(where);
  mean->needs(deviation);
  deviation->needs(mean);
}

void refuse_empty_values(const CLI::App& command, const std::vector<const char*>& options) {
  for (const char* name : options) {
    const CLI::Option* option = command.get_option(name);
    if (option->count() > 0 && option->as<std::string>().empty()) {
      throw UsageError(text(name, ": empty, must name something"));
    }
  }
}

DataRequest inherit_data_options(const CLI::App& command, const DataRequest& given,
                                 const DataRequest& stored) {
  DataRequest request = stored;
  request.normalization = given.normalization;
  const auto was_given = [&](const char* name) { return command.get_option(name)->count() > 0; };
  if (was_given("--data")) request.spec = given.spec;
  if (was_given("--test")) request.test_spec = given.test_spec;
  if (was_given("--classes")) request.selection.classes = given.selection.classes;
  if (was_given("--per-class")) request.selection.per_class = given.selection.per_class;
  if (was_given("--test-per-class")) {
    request.selection.test_per_class = given.selection.test_per_class;
  }
  if (was_given("--validation-per-class")) {
    request.selection.validation_per_class = given.selection.validation_per_class;
  }
  if (was_given("--image-size")) request.source.image_size = given.source.image_size;
  if (was_given("--channels")) request.source.channels = given.source.channels;
  return request;
}

}  // namespace pumice::cli
