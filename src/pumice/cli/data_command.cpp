#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "pumice/cli/command.h"
#include "pumice/core/suggestion.h"
#include "pumice/data/catalog.h"
#include "pumice/data/fetch.h"
#include "pumice/data/lacuna.h"
#include "pumice/data/normalization.h"
#include "pumice/data/split.h"

namespace pumice::cli {
namespace {

namespace fs = std::filesystem;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
}

// Pads to a width in letters, not bytes.
std::string padded(const std::string& word, std::size_t width) {
  std::size_t letters = 0;
  for (const char byte : word) letters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return word + std::string(letters < width ? width - letters : 0, ' ');
}

void list_data_sets(bool as_json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const CatalogEntry& entry : catalog()) {
    const auto folder = installed_folder(entry);
    if (as_json) {
      nlohmann::json row{{"name", entry.name},
                         {"here", folder.has_value()},
                         {"description", entry.description},
                         {"terms", entry.terms},
                         {"size", entry.size}};
      row["folder"] = folder ? nlohmann::json(folder->string()) : nlohmann::json();
      row["addresses"] = nlohmann::json::array();
      for (const PublishedFile& file : entry.files) row["addresses"].push_back(file.url);
      rows.push_back(std::move(row));
      continue;
    }
    const std::string state = folder ? "here" : entry.files.empty() ? "to be made" : "not here";
    say(padded(entry.name, 15) + padded(state, 12) + entry.description);
    say(padded("", 27) + entry.terms + (entry.size.empty() ? "" : "; download " + entry.size));
    if (folder) say(padded("", 27) + folder->string());
  }
  if (as_json) {
    say(rows.dump(2));
  } else {
    say("\nFetch one with 'pumice data get NAME'; the cache is " + cache_root().string() + ".");
  }
}

void add_list(CLI::App& data) {
  CLI::App* command = data.add_subcommand("list", "Data sets that have a name, and which are here");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "For machines");
  command->footer("Example: pumice data list");
  command->callback([as_json] { list_data_sets(*as_json); });
}

void get_data_set(const std::string& name, const std::string& from, const std::string& url) {
  const CatalogEntry* entry = find_in_catalog(name);
  if (!entry) {
    std::vector<std::string> names;
    for (const CatalogEntry& known : catalog()) names.push_back(known.name);
    throw UsageError(text("unknown data set '", name, "'", suggestion(name, names),
                          " (see 'pumice data list')"));
  }
  FetchOptions options{.from = {}, .url = url};
  if (!from.empty()) options.from = from;
  const FetchSummary summary = fetch(*entry, options);
  say(text(name, ": ", summary.origin == "already here" ? "" : "from ", summary.origin, ", in ",
           summary.folder.string()));
  say("Terms: " + entry->terms);
}

void add_get(CLI::App& data) {
  struct Arguments {
    std::string name;
    std::string from;
    std::string url;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = data.add_subcommand("get", "Fetch a data set into the cache");
  command->add_option("NAME", arguments->name, "Its name in 'pumice data list'")->required();
  CLI::Option* from =
      command
          ->add_option("--from", arguments->from, "Take an archive or folder that is already there")
          ->type_name("PATH");
  command->add_option("--url", arguments->url, "Another address than the official one (a mirror)")
      ->type_name("URL")
      ->excludes(from);
  command->footer(
      "Example: pumice data get cifar10\n"
      "         pumice data get cifar100 --from cifar-100-binary.tar.gz");
  command->callback(
      [arguments] { get_data_set(arguments->name, arguments->from, arguments->url); });
}

std::vector<std::int64_t> class_counts(const Dataset& dataset, std::int64_t class_count) {
  if (dataset.size() == 0)
    return std::vector<std::int64_t>(static_cast<std::size_t>(class_count), 0);
  const at::Tensor counts = at::bincount(dataset.labels, {}, class_count);
  return {counts.data_ptr<std::int64_t>(), counts.data_ptr<std::int64_t>() + class_count};
}

nlohmann::json part_info(const Dataset& dataset, const ClassTable& classes) {
  nlohmann::json part{{"images", dataset.size()}};
  part["per_class"] = class_counts(dataset, classes.size());
  part["first_ids"] = nlohmann::json::array();
  for (std::size_t i = 0; i < dataset.ids.size() && i < 5; ++i)
    part["first_ids"].push_back(dataset.ids[i]);
  if (dataset.size() > 0) part["digest"] = digest(dataset);
  return part;
}

nlohmann::json describe(const DataRequest& request) {
  const Selection selection = load(request);
  const Dataset& train = selection.train;
  const Normalization normalization = measure_normalization(train);
  nlohmann::json info{{"request", to_json(request)},
                      {"type", train.images.scalar_type() == at::kByte ? "uint8" : "float32"},
                      {"channels", train.images.size(1)},
                      {"height", train.images.size(2)},
                      {"width", train.images.size(3)},
                      {"mean", normalization.mean},
                      {"deviation", normalization.deviation}};
  info["classes"] = nlohmann::json::array();
  for (std::size_t k = 0; k < train.classes.names.size(); ++k) {
    info["classes"].push_back(
        {{"label", train.classes.original_labels[k]}, {"name", train.classes.names[k]}});
  }
  info["train"] = part_info(train, train.classes);
  info["validation"] = part_info(selection.validation, train.classes);
  info["test"] = part_info(selection.test, train.classes);
  return info;
}

std::string joined(const nlohmann::json& values) {
  std::string line;
  for (const nlohmann::json& value : values) {
    line +=
        (line.empty() ? "" : ", ") + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return line;
}

std::string rounded(const nlohmann::json& values) {
  std::string line;
  for (const double value : values) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4f", value);
    line += (line.empty() ? "" : ", ") + std::string(number);
  }
  return line;
}

void print_info(const nlohmann::json& info) {
  const auto row = [](const std::string& key, const std::string& value) {
    say(padded(key, 14) + value);
  };
  row("source", info["request"]["source"]);
  row("images",
      text(info["height"], "×", info["width"], ", ", info["channels"],
           info["channels"] == 1 ? " channel, " : " channels, ", info["type"].get<std::string>()));
  for (const char* part : {"train", "validation", "test"}) {
    const nlohmann::json& described = info[part];
    if (described["images"] == 0) continue;
    row(part, text(described["images"], " images: ", joined(described["first_ids"]), ", …"));
  }
  row("digest", info["train"]["digest"]);
  if (info["mean"].empty()) {
    row("normalisation", "none, float32 images are used as they are");
  } else {
    row("normalisation",
        "mean " + rounded(info["mean"]) + ", deviation " + rounded(info["deviation"]));
  }
  say("");
  say(padded("label", 8) + padded("class", 28) + "train  validation  test");
  for (std::size_t k = 0; k < info["classes"].size(); ++k) {
    const nlohmann::json& entry = info["classes"][k];
    say(padded(entry["label"].dump(), 8) + padded(entry["name"].get<std::string>(), 28) +
        padded(info["train"]["per_class"][k].dump(), 7) +
        padded(info["validation"]["per_class"][k].dump(), 12) +
        info["test"]["per_class"][k].dump());
  }
}

CLI::Option* add_seed(CLI::App& command, std::uint64_t& seed, const std::string& what) {
  return command.add_option("--seed", seed, what)->type_name("N")->capture_default_str();
}

void add_info(CLI::App& data) {
  auto request = std::make_shared<DataRequest>();
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = data.add_subcommand("info", "What a selection holds: sizes, classes, digest");
  command->add_option("SPEC", request->spec, "NAME (see 'pumice data list') or kind:PATH")
      ->required();
  command->add_flag("--json", *as_json, "For machines");
  add_data_options(*command, *request, /*with_spec=*/false);
  add_seed(*command, request->selection.seed, "Seed of the selection")->group("Data");
  command->footer("Example: pumice data info fashion-mnist --classes 0-4 --per-class 100 --seed 1");
  command->callback([request, as_json] {
    const nlohmann::json info = describe(*request);
    if (*as_json) {
      say(info.dump(2));
    } else {
      print_info(info);
    }
  });
}

void add_make_lacuna(CLI::App& make) {
  struct Arguments {
    std::string from;
    std::string out;
    LacunaOptions options;
  };
  auto arguments = std::make_shared<Arguments>();
  LacunaOptions& options = arguments->options;
  CLI::App* command = make.add_subcommand(
      "lacuna", "Cut Lacuna-10 and Lacuna-100 from a folder with many pictures of each identity");
  command
      ->add_option("--from", arguments->from,
                   "DIR/identity/*.jpg, or the same below train and test")
      ->type_name("DIR")
      ->required();
  command->add_option("--out", arguments->out, "Where lacuna-10 and lacuna-100 are made")
      ->type_name("DIR")
      ->required();
  command->add_option("--small", options.small, "Identities of the small set, 0 for none")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--large", options.large, "Identities of the large set, 0 for none")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--pictures", options.pictures, "Pictures of each identity")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--test", options.test, "How many of them are test")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--image-size", options.image_size, "Resize to N×N")
      ->type_name("N")
      ->check(CLI::Range(4, 1024))
      ->capture_default_str();
  add_seed(*command, options.seed, "Seed of the draw");
  command->footer("Example: pumice data make lacuna --from vggface2 --out .");
  command->callback([arguments] {
    const LacunaSummary summary = make_lacuna(arguments->from, arguments->out, arguments->options);
    say(text(summary.identities_eligible, " of ", summary.identities_found,
             " identities have at least ", arguments->options.pictures, " pictures."));
    for (const fs::path& folder : summary.folders) say("Made " + folder.string());
  });
}

void make_cohort(const DataRequest& request, const std::string& forget_class, std::int64_t count,
                 const std::string& out, bool force) {
  if (fs::exists(out) && !force) {
    fail(out, ": exists already, must not be overwritten without --force");
  }
  const Selection selection = load(request);
  const auto ids = draw_cohort(selection.train, forget_class, count, request.selection.seed);
  make_split(selection.train, selection.test, ids);  // as a check
  write_ids(out, ids);
  say(text(out, ": ", ids.size(), ids.size() == 1 ? " id" : " ids", " of ", selection.train.size(),
           " training examples"));
}

void add_make_cohort(CLI::App& make) {
  struct Arguments {
    DataRequest request;
    std::string forget_class;
    std::int64_t count = 0;
    std::string out;
    bool force = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      make.add_subcommand("cohort", "Draw examples to be forgotten, as a file of ids");
  add_data_options(*command, arguments->request);
  command->add_option("--forget-class", arguments->forget_class, "The class, as a label or a name")
      ->type_name("CLASS")
      ->required();
  command->add_option("--forget-count", arguments->count, "How many of it")
      ->type_name("N")
      ->required()
      ->check(CLI::PositiveNumber);
  command->add_option("--out", arguments->out, "The file, one id a line")
      ->type_name("FILE")
      ->required();
  command->add_flag("--force", arguments->force, "Overwrite the file if it exists");
  add_seed(*command, arguments->request.selection.seed, "Seed of the selection and of the cohort");
  command->footer(
      "Example: pumice data make cohort --data fashion-mnist --classes 0-4 --per-class 100 "
      "--forget-class 0 --forget-count 25 --seed 1 --out cohort.txt");
  command->callback([arguments] {
    make_cohort(arguments->request, arguments->forget_class, arguments->count, arguments->out,
                arguments->force);
  });
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "List, fetch, describe and make data sets");
  data->require_subcommand(1);
  data->footer("Example: pumice data info fashion-mnist --classes 0-4 --per-class 100");
  add_list(*data);
  add_get(*data);
  add_info(*data);
  CLI::App* make = data->add_subcommand("make", "Make a data set or a cohort file");
  make->require_subcommand(1);
  make->footer(
      "Example: pumice data make cohort --data fashion-mnist --forget-class 0 "
      "--forget-count 25 --seed 1 --out cohort.txt");
  add_make_lacuna(*make);
  add_make_cohort(*make);
}

}  // namespace pumice::cli
