// pumice index show, verify, bound: what an index holds, whether it is whole, and what its releases
// can tell together.
#include "pumice/cli/index_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "pumice/cli/command.h"
#include "pumice/core/file_digest.h"
#include "pumice/core/memory.h"
#include "pumice/data/split.h"
#include "pumice/index/forgetting_index.h"
#include "pumice/index/release_bounds.h"
#include "pumice/record/record.h"

namespace pumice::cli {

namespace {

using Json = nlohmann::json;

std::string noise_text(const Ledger::Json& noise) {
  if (noise.is_null()) return "none";
  return text(noise.at("scale").get<double>(), " ", noise.at("shape").get<std::string>(),
              noise.value("private", true) ? "" : ", repeatable");
}

std::string short_text(const ReleaseBound& bound) {
  return bound.kind == ReleaseBound::Kind::finite     ? bound.text()
         : bound.kind == ReleaseBound::Kind::infinite ? "infinite"
                                                      : "unknown";
}

void print_ledger(const Ledger& ledger, const ReleaseBounds& bounds) {
  std::printf("Ledger\n  %-20s  %-11s %9s %8s  %-16s %-14s %s\n", "when", "what", "forgotten",
              "share", "noise", "white-box", "with the later ones");
  for (const Ledger::Json& entry : ledger.entries()) {
    const std::string kind = entry.at("kind"), when = entry.at("when");
    if (kind == "request") {
      const auto number = entry.at("request").get<std::int64_t>();
      const Release& release = bounds.releases.at(static_cast<std::size_t>(number - 1));
      std::printf("  %-20s  %-11s %9lld %6.2f %%  %-16s %-14s %s\n", when.c_str(),
                  text("request ", number).c_str(),
                  static_cast<long long>(entry.at("forgotten").get<std::int64_t>()),
                  100 * entry.at("share_forgotten").get<double>(),
                  noise_text(entry.at("noise")).c_str(), short_text(release.white_box).c_str(),
                  short_text(release.white_box_since).c_str());
    } else if (kind == "bound") {
      std::printf("  %-20s  audit of request %lld\n", when.c_str(),
                  static_cast<long long>(entry.at("request").get<std::int64_t>()));
    } else {
      std::printf("  %-20s  %-11s %lld examples%s\n", when.c_str(), kind.c_str(),
                  static_cast<long long>(entry.at("examples").get<std::int64_t>()),
                  kind == "refresh" ? ", the old point wiped" : "");
    }
  }
}

Json bounds_json(const ReleaseBounds& bounds) {
  Json releases = Json::array();
  for (const Release& release : bounds.releases) {
    releases.push_back({{"request", release.request},
                        {"point", release.point},
                        {"white_box", to_json(release.white_box)},
                        {"black_box", to_json(release.black_box)},
                        {"white_box_since", to_json(release.white_box_since)},
                        {"black_box_since", to_json(release.black_box_since)}});
  }
  return {{"white_box", to_json(bounds.white_box)},
          {"black_box", to_json(bounds.black_box)},
          {"releases", releases}};
}

void print_recovery(const ForgettingIndex& index) {
  if (index.recovery() == Recovery::completed) {
    std::printf("A change that had been interrupted was completed.\n");
  } else if (index.recovery() == Recovery::rolled_back) {
    std::printf("A change that had been interrupted was taken back.\n");
  }
}

// Linearised at a release, not at the trained weights.
bool refreshed(const ForgettingIndex& index) {
  const IndexTerms& terms = index.content().terms;
  return terms.point_examples != terms.built_examples ||
         index.ledger().last_with("wiped_point") != nullptr;
}

void run_show(const std::string& folder, bool as_json) {
  const ForgettingIndex index(folder);
  const IndexContent& content = index.content();
  const IndexTerms& terms = content.terms;
  const ReleaseBounds bounds = release_bounds(index.ledger());
  const std::int64_t left = content.examples();
  if (as_json) {
    Json ledger = Json::array();
    for (const Ledger::Json& entry : index.ledger().entries())
      ledger.push_back(Json::parse(entry.dump()));
    std::printf("%s\n", Json{{"examples", left},
                             {"built_examples", terms.built_examples},
                             {"point_examples", terms.point_examples},
                             {"share_forgotten", index.share_since_build(left)},
                             {"share_since_point", index.share_since_point(left)},
                             {"model", terms.model},
                             {"scale", terms.scale},
                             {"ridge", terms.ridge},
                             {"advice", index.advice(left)},
                             {"bounds", bounds_json(bounds)},
                             {"ledger", ledger}}
                            .dump(2)
                            .c_str());
    return;
  }
  print_recovery(index);
  std::printf("%s: %lld of %lld examples are left, %lld classes, %lld weights\n", folder.c_str(),
              static_cast<long long>(left), static_cast<long long>(terms.built_examples),
              static_cast<long long>(content.classes()),
              static_cast<long long>(content.wlin.numel()));
  std::printf("  linearised at %s with %lld examples; scale %g (%s), ridge %g\n",
              refreshed(index) ? "a release" : "the trained weights",
              static_cast<long long>(terms.point_examples), terms.scale, terms.scale_rule.c_str(),
              terms.ridge);
  std::printf("%s", sensitivity(index));
  print_ledger(index.ledger(), bounds);
  if (!bounds.releases.empty()) {
    std::printf("All releases together: white-box %s, black-box (one query each) %s\n",
                bounds.white_box.text().c_str(), bounds.black_box.text().c_str());
  }
  const std::string advice = index.advice(left);
  if (!advice.empty()) std::printf("Advice: %s\n", advice.c_str());
}

struct VerifyFlags {
  std::string index, head, cohort;
  bool json = false;
};

void run_verify(const CLI::App& command, const VerifyFlags& flags) {
  refuse_empty_values(command, {"--head", "--cohort"});
  const ForgettingIndex index(flags.index);
  const Ledger& ledger = index.ledger();
  if (!flags.head.empty() && !ledger.contains(flags.head)) {
    fail("--head: ", flags.head, " is no entry of the ledger: it was rewritten, or is another's");
  }
  std::optional<std::int64_t> request;
  if (!flags.cohort.empty()) {
    const std::string cohort = keyed_digest(index.content().terms.key, read_ids(flags.cohort));
    for (const Ledger::Json& entry : ledger.entries()) {
      if (entry.value("cohort", "") == cohort) request = entry.at("request").get<std::int64_t>();
    }
    if (!request) fail(flags.cohort, ": no request was for exactly these ids");
  }
  if (flags.json) {
    Json result{{"entries", ledger.entries().size()}, {"head", ledger.head()}};
    if (request) result["request"] = *request;
    std::printf("%s\n", result.dump(2).c_str());
    return;
  }
  print_recovery(index);
  std::printf("%s: whole; %zu entries, each follows the one before; the files are the ledger's\n",
              flags.index.c_str(), ledger.entries().size());
  if (request) {
    std::printf("%s: these ids, and no others, were request %lld\n", flags.cohort.c_str(),
                static_cast<long long>(*request));
  }
  std::printf("Head: %s\n", ledger.head().c_str());
}

struct BoundFlags {
  std::string index, audit;
  std::optional<std::int64_t> request;
  bool json = false;
};

void run_bound(const CLI::App& command, const BoundFlags& flags) {
  refuse_empty_values(command, {"--audit"});
  ForgettingIndex index(flags.index);
  const Record audit = read_record(flags.audit);
  index.note("bound", bound_entry(index.ledger(), audit, file_digest(flags.audit), flags.request));
  const ReleaseBounds bounds = release_bounds(index.ledger());
  if (flags.json) {
    std::printf("%s\n", bounds_json(bounds).dump(2).c_str());
    return;
  }
  const auto number = index.ledger().entries().back().at("request").get<std::int64_t>();
  const Release& release = bounds.releases.at(static_cast<std::size_t>(number - 1));
  std::printf("Release %lld: white-box %s, black-box %s\n", static_cast<long long>(number),
              release.white_box.text().c_str(), release.black_box.text().c_str());
  std::printf("All releases together: white-box %s, black-box (one query each) %s\n",
              bounds.white_box.text().c_str(), bounds.black_box.text().c_str());
}

}  // namespace

const char* sensitivity(const ForgettingIndex& index) {
  return refreshed(index) && index.content().examples() == index.content().terms.point_examples
             ? "It holds the weights of the last release, and nothing of whoever was forgotten "
               "before it that the release does not hold.\n"
             : "It holds the weights before deletion and is as sensitive as they are: never "
               "release it, and refresh or delete it when the last request of a period is "
               "answered.\n";
}

void add_index_show(CLI::App& index) {
  CLI::App* command = index.add_subcommand(
      "show", "What is left, what was asked and released, and the sum of the bounds");
  const auto folder = std::make_shared<std::string>();
  const auto as_json = std::make_shared<bool>(false);
  command->add_option("INDEX", *folder, "The index")->type_name("DIR")->required();
  command->add_flag("--json", *as_json, "Print it as JSON, with the whole ledger");
  command->footer("Example: pumice index show w.index");
  command->callback([folder, as_json] { run_show(*folder, *as_json); });
}

void add_index_verify(CLI::App& index) {
  CLI::App* command =
      index.add_subcommand("verify", "Check the chain of the ledger and the digests of the files");
  const auto flags = std::make_shared<VerifyFlags>();
  command->add_option("INDEX", flags->index, "The index")->type_name("DIR")->required();
  command
      ->add_option("--head", flags->head,
                   "A digest of the ledger that was noted earlier, elsewhere: must be in it")
      ->type_name("DIGEST");
  command->add_option("--cohort", flags->cohort, "Say which request was for exactly these ids")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "Print the result as JSON");
  command->footer("Example: pumice index verify w.index --cohort cohort.txt");
  command->callback([command, flags] { run_verify(*command, *flags); });
}

void add_index_bound(CLI::App& index) {
  CLI::App* command =
      index.add_subcommand("bound", "Note the audit of a release, and add up the bounds");
  const auto flags = std::make_shared<BoundFlags>();
  command->add_option("INDEX", flags->index, "The index")->type_name("DIR")->required();
  command->add_option("--audit", flags->audit, "The record (pumice audit --record)")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--request", flags->request,
                   "The request that released the audited model (default: found by its digest)")
      ->type_name("K");
  command->add_flag("--json", flags->json, "Print the bounds as JSON");
  command->footer("Example: pumice index bound w.index --request 1 --audit audit-1.json");
  command->callback([command, flags] { run_bound(*command, *flags); });
}

void add_index_command(CLI::App& app) {
  CLI::App* index =
      app.add_subcommand("index", "Answer many deletion requests to one model quickly");
  index->require_subcommand(1);
  index->footer(
      "Requests go through 'pumice forget --index'.\n"
      "Example: pumice index build --model w.safetensors --init w.start.safetensors --out w.index");
  add_index_build(*index);
  add_index_show(*index);
  add_index_verify(*index);
  add_index_refresh(*index);
  add_index_bound(*index);
}

}  // namespace pumice::cli
