#include "pumice/cli/command.h"

namespace pumice::cli {

void add_data_options(CLI::App& command, DataRequest& request, bool with_spec) {
  if (with_spec) {
    command.add_option("--data", request.spec,
                       "Data set: NAME (see 'pumice data list') or kind:PATH")
        ->type_name("SPEC")
        ->capture_default_str()
        ->group("Data");
  }
  command.add_option("--test", request.test_spec, "Where test examples come from, if not from --data")
      ->type_name("SPEC")
      ->group("Data");
  command.add_option("--classes", request.selection.classes,
                     "Classes to use, as labels or names: 0-4, 0,2,5-7, cat,dog (default: all)")
      ->type_name("LIST")
      ->group("Data");
  command.add_option("--per-class", request.selection.per_class,
                     "Training examples drawn from each class (default: all)")
      ->type_name("N")
      ->group("Data");
  command.add_option("--test-per-class", request.selection.test_per_class,
                     "Test examples drawn from each class (default: all)")
      ->type_name("N")
      ->group("Data");
  command.add_option("--validation-per-class", request.selection.validation_per_class,
                     "Validation examples drawn from each class of the training part (default: 0)")
      ->type_name("N")
      ->group("Data");
  command.add_option("--image-size", request.source.image_size,
                     "Resize images to N×N (folders: 32 unless told)")
      ->type_name("N")
      ->check(CLI::Range(4, 1024))
      ->group("Data");
  command.add_option("--channels", request.source.channels, "1 for grey, 3 for colour")
      ->check(CLI::IsMember({1, 3}))
      ->group("Data");
}

}  // namespace pumice::cli
