#include "pumice/data/lacuna.h"

#include <fstream>
#include <map>
#include <set>
#include <span>

#include "pumice/core/atomic_folder.h"
#include "pumice/core/error.h"
#include "pumice/core/interrupt.h"
#include "pumice/core/progress.h"
#include "pumice/core/seed.h"
#include "pumice/data/image_file.h"
#include "pumice/data/picture_source.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

struct Identity {
  std::string name;
  std::vector<fs::path> pictures;
};

void check(const LacunaOptions& options) {
  if (options.small < 0 || options.large < 0 || options.small + options.large < 1) {
    fail("lacuna: ", options.small, " and ", options.large,
         " identities, must be >= 0 and not both 0");
  }
  if (options.small == options.large) {
    fail("lacuna: both sets have ", options.small, " identities, must differ to differ in name");
  }
  if (options.test < 1 || options.test >= options.pictures) {
    fail("lacuna: ", options.test, " test pictures, must be in 1 … ", options.pictures - 1);
  }
  if (options.image_size < 4 || options.image_size > 1024) {
    fail("lacuna: image-size ", options.image_size, ", must be in 4 … 1024");
  }
}

std::vector<Identity> list_identities(const fs::path& from) {
  if (!fs::is_directory(from)) fail(from.string(), ": no such folder");
  std::vector<fs::path> parts;
  for (const char* part : {"train", "test"}) {
    if (fs::is_directory(from / part)) parts.push_back(from / part);
  }
  if (parts.empty()) parts.push_back(from);
  std::map<std::string, std::vector<fs::path>> pictures_of;
  for (const fs::path& part : parts) {
    for (const fs::path& folder : subfolders(part)) {
      std::vector<fs::path>& pictures = pictures_of[folder.filename().string()];
      for (const fs::path& picture : picture_files(folder)) pictures.push_back(picture);
    }
  }
  std::vector<Identity> identities;
  for (auto& [name, pictures] : pictures_of) identities.push_back({name, std::move(pictures)});
  return identities;
}

// Pooled parts may use a name twice: the second "0001_01" becomes "0001_01-2".
std::string unused_name(const std::string& stem, std::set<std::string>& used) {
  std::string name = stem;
  for (int number = 2; !used.insert(name).second; ++number) name = text(stem, "-", number);
  return name + ".png";
}

void write_picture(const fs::path& source, const fs::path& target, std::int64_t image_size) {
  at::Tensor image;
  try {
    image = resize_images(read_image(source, 3).unsqueeze(0), image_size)[0];
  } catch (const Error& reason) {
    const std::string sentence = reason.what();
    if (sentence.starts_with(source.string())) throw;
    fail(source.string(), ": ", sentence);
  }
  const std::string bytes = encode_png(image);
  std::ofstream out(target, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) fail(target.string(), ": cannot be written");
}

void make_folder(const fs::path& folder) {
  std::error_code reason;
  fs::create_directories(folder, reason);
  if (reason) fail(folder.string(), ": cannot be made, ", reason.message());
}

void write_set(const fs::path& target, const std::vector<const Identity*>& identities,
               const LacunaOptions& options) {
  AtomicFolder folder(target);
  Progress progress(target.filename().string(),
                    static_cast<std::int64_t>(identities.size()) * options.pictures);
  std::int64_t done = 0;
  for (const Identity* identity : identities) {
    for (const char* part : {"train", "test"}) {
      make_folder(folder.temporary_path() / part / identity->name);
    }
    RandomStream stream(options.seed, "lacuna/" + identity->name);
    const auto order = stream.permutation(static_cast<std::int64_t>(identity->pictures.size()));
    std::set<std::string> used;
    for (std::int64_t i = 0; i < options.pictures; ++i) {
      if (interrupted()) fail("interrupted, ", target.string(), " was not made");
      const fs::path& source =
          identity->pictures[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
      const char* part = i < options.test ? "test" : "train";
      write_picture(source,
                    folder.temporary_path() / part / identity->name /
                        unused_name(source.stem().string(), used),
                    options.image_size);
      progress.update(++done);
    }
  }
  folder.commit();
}

}  // namespace

LacunaSummary make_lacuna(const fs::path& from, const fs::path& out, const LacunaOptions& options) {
  check(options);
  LacunaSummary summary;
  std::vector<std::pair<fs::path, std::int64_t>> sets;
  for (const std::int64_t count : {options.small, options.large}) {
    if (count == 0) continue;
    sets.emplace_back(out / text("lacuna-", count), count);
    if (fs::exists(sets.back().first)) {
      fail(sets.back().first.string(), ": exists already, must not be overwritten");
    }
  }
  const std::vector<Identity> identities = list_identities(from);
  std::vector<const Identity*> eligible;
  for (const Identity& identity : identities) {
    if (static_cast<std::int64_t>(identity.pictures.size()) >= options.pictures) {
      eligible.push_back(&identity);
    }
  }
  summary.identities_found = static_cast<std::int64_t>(identities.size());
  summary.identities_eligible = static_cast<std::int64_t>(eligible.size());
  const std::int64_t needed = options.small + options.large;
  if (summary.identities_eligible < needed) {
    fail(from.string(), ": ", summary.identities_eligible, " identities with at least ",
         options.pictures, " pictures (of ", summary.identities_found, "), but ", needed,
         " are needed");
  }
  const auto order = RandomStream(options.seed, "lacuna").permutation(summary.identities_eligible);
  std::size_t next = 0;
  for (const auto& [target, count] : sets) {
    std::vector<const Identity*> drawn;
    for (std::int64_t k = 0; k < count; ++k) {
      drawn.push_back(eligible[static_cast<std::size_t>(order[next++])]);
    }
    write_set(target, drawn, options);
    summary.folders.push_back(target);
  }
  return summary;
}

}  // namespace pumice
