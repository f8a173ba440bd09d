#include "pumice/data/data_source.h"

#include <filesystem>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"
#include "pumice/data/catalog.h"
#include "pumice/data/cifar_source.h"
#include "pumice/data/idx_source.h"
#include "pumice/data/image_folder_source.h"
#include "pumice/data/npz_source.h"
#include "pumice/data/tiny_imagenet_source.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<DataSource> open_idx_digits(const fs::path& folder, const SourceOptions& options) {
  return open_idx(folder, {}, options);
}

struct Kind {
  const char* name;
  std::unique_ptr<DataSource> (*open)(const fs::path&, const SourceOptions&);
};

constexpr Kind kinds[] = {
    {"idx", open_idx_digits},      {"cifar10", open_cifar10}, {"cifar100", open_cifar100},
    {"folder", open_image_folder}, {"npz", open_npz},         {"tiny-imagenet", open_tiny_imagenet},
    {"lacuna", open_lacuna},
};

void check(const SourceOptions& options) {
  if (options.image_size && (*options.image_size < 4 || *options.image_size > 1024)) {
    fail("image-size: ", *options.image_size, ", must be in 4 … 1024");
  }
  if (options.channels && *options.channels != 1 && *options.channels != 3) {
    fail("channels: ", *options.channels, ", must be 1 or 3");
  }
}

std::unique_ptr<DataSource> open_kind(const std::string& kind, const fs::path& path,
                                      const SourceOptions& options) {
  std::vector<std::string> names;
  for (const Kind& known : kinds) {
    if (kind == known.name) return known.open(path, options);
    names.emplace_back(known.name);
  }
  fail("data: unknown kind '", kind, "'", suggestion(kind, names),
       " (kinds are idx, cifar10, cifar100, folder, npz, tiny-imagenet, lacuna)");
}

std::unique_ptr<DataSource> open_named(const std::string& name, const SourceOptions& options) {
  const CatalogEntry* entry = find_in_catalog(name);
  if (!entry) {
    std::vector<std::string> names;
    for (const CatalogEntry& known : catalog()) names.push_back(known.name);
    const std::string remedy = fs::exists(name)
                                   ? text("; a path needs its kind, as in folder:", name)
                                   : suggestion(name, names);
    fail("data: unknown data set '", name, "'", remedy, " (see 'pumice data list')");
  }
  if (entry->files.empty()) {
    fail("data: '", name, "' has no place of its own; make it with 'pumice data make ", name,
         " --from DIR --out DIR' and use ", entry->spec_kind, ":DIR");
  }
  const auto folder = installed_folder(*entry);
  if (!folder) {
    const std::string package =
        entry->package.empty() ? "" : text(" or install the Debian package ", entry->package);
    fail("data: '", name, "' is not here; run 'pumice data get ", name, "'", package);
  }
  if (entry->name == "fashion-mnist")
    return open_idx(*folder, fashion_mnist_class_names(), options);
  return open_kind(entry->spec_kind, *folder, options);
}

}  // namespace

const char* part_name(Part part) {
  return part == Part::train ? "train" : "test";
}

std::unique_ptr<DataSource> open_source(const std::string& spec, const SourceOptions& options) {
  check(options);
  if (spec.empty()) fail("data: empty, must be NAME or kind:PATH");
  const std::size_t colon = spec.find(':');
  if (colon == std::string::npos) return open_named(spec, options);
  if (colon + 1 == spec.size()) fail("data: '", spec, "' has no path behind the colon");
  return open_kind(spec.substr(0, colon), spec.substr(colon + 1), options);
}

}  // namespace pumice
