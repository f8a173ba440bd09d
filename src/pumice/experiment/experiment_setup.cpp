#include "pumice/experiment/experiment_setup.h"

#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/data/split.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int pretraining_revision = 1;

// How to get what a SPEC names, where the source's own message does not say it.
std::string remedy(const std::string& spec) {
  if (spec.starts_with("lacuna:")) {
    const fs::path folder = spec.substr(7);
    return text("; 'pumice data make lacuna --from DIR --out ",
                folder.has_parent_path() ? folder.parent_path().string() : ".",
                "' makes it from a collection of faces (docs/data.md)");
  }
  if (spec.find(':') != std::string::npos) return "; see 'pumice data list' and docs/data.md";
  return "";
}

template <typename Work>
auto with_remedy(const Protocol& protocol, const DataRequest& request, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail(protocol.file.string(), ": data '", request.spec, "' cannot be used, ", error.what(),
         remedy(request.spec));
  }
}

// Names and labels, not pixels: reading a hundred thousand pictures takes minutes.
std::string listing_digest(const DataRequest& request) {
  const auto source = open_source(request.spec, request.source);
  const Listing& listing = source->listing(Part::train);
  Digest digest;
  for (const std::string& name : source->classes().names) digest.add_text(name);
  for (std::size_t i = 0; i < listing.ids.size(); ++i) {
    digest.add_text(listing.ids[i]);
    digest.add_number(static_cast<std::uint64_t>(listing.labels[i]));
  }
  return digest.label();
}

}  // namespace

ExperimentSetup::ExperimentSetup(Protocol protocol, fs::path out, int threads)
    : protocol_(std::move(protocol)),
      out_(std::move(out)),
      store_(out_ / "steps"),
      threads_(threads) {
  const ModelProtocol& model = protocol_.model;
  if (!model.body.empty()) {
    try {
      body_ = open_checkpoint(model.body);
    } catch (const Error& error) {
      fail(protocol_.file.string(), ": body cannot be used, ", error.what(),
           "; 'pumice train' makes one");
    }
    body_digest_ = digest(*body_->model, body_->weights);
    body_identity_ = {{"file", body_digest_}};
  } else if (model.pretraining) {
    const DataRequest& data = model.pretraining->data;
    const std::string listing = with_remedy(protocol_, data, [&] { return listing_digest(data); });
    pretraining_ = StepKey{.kind = "pretraining",
                           .depends = {{"revision", pretraining_revision},
                                       {"architecture", model.architecture},
                                       {"width", model.width},
                                       {"data", to_json(data)},
                                       {"listing", listing},
                                       {"recipe", to_json(model.pretraining->recipe)},
                                       {"threads", threads_}}};
    body_identity_ = {{"pretraining", pretraining_->digest()}};
  } else {
    body_identity_ = {{"fresh", model.architecture}, {"width", model.width}};
  }
  for (const std::uint64_t seed : protocol_.seeds) {
    SeedData data{.seed = seed,
                  .request = protocol_.data,
                  .selection = {},
                  .train_digest = {},
                  .test_digest = {},
                  .validation_digest = {}};
    data.request.selection.seed = seed;
    data.selection = with_remedy(protocol_, data.request, [&] { return load(data.request); });
    if (data.selection.test.size() == 0) {
      fail(protocol_.file.string(), ": data '", data.request.spec,
           "' has no test part, must have one (or name it with test = SPEC)");
    }
    data.train_digest = digest(data.selection.train);
    data.test_digest = digest(data.selection.test);
    if (data.selection.validation.size() > 0) {
      data.validation_digest = digest(data.selection.validation);
    }
    // The class and the size of the cohort must be there, too.
    draw_cohort(data.selection.train, protocol_.cohort_class, protocol_.cohort_size, seed);
    seeds_.push_back(std::move(data));
  }
  if (body_) start_of(seeds_.front());  // the body must take a fresh head
}

fs::path ExperimentSetup::pretrained_file() const {
  return store_.folder_of(*pretraining_) / "body.safetensors";
}

ExperimentSetup::SeedStart ExperimentSetup::start_of(const SeedData& seed) const {
  const Dataset& train = seed.selection.train;
  if (!body_ && !pretraining_) {
    return {network_for(seed), measure_normalization(train)};
  }
  const Checkpoint body = body_ ? *body_ : open_checkpoint(pretrained_file());
  return {with_fresh_head(body, train.classes.size(), seed.seed),
          normalization_for(body.metadata, train)};
}

Start ExperimentSetup::network_for(const SeedData& seed) const {
  if (body_) return with_fresh_head(*body_, seed.selection.train.classes.size(), seed.seed);
  return fresh_start(protocol_.model.architecture, protocol_.model.width, seed.selection.train,
                     seed.seed);
}

}  // namespace pumice
