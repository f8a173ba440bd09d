// The data sets that have a name: where they come from officially, on which terms, and where they
// are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pumice {

struct PublishedFile {
  std::string url;
  std::string md5;  // as its publisher or common loaders state it; "": not checked

  std::string name() const { return url.substr(url.rfind('/') + 1); }
};

// An archive on npm that holds the same images as pictures; only CIFAR-10 has one.
struct NpmPackage {
  std::string name;
  std::string version;
  std::string sha512;  // base64
};

struct CatalogEntry {
  std::string name;
  std::string description;
  std::string terms;                 // whose it is, and what they ask for
  std::string size;                  // of the download, for people
  std::vector<PublishedFile> files;  // one archive, or the files themselves; none: not downloadable
  bool archive = false;
  std::optional<NpmPackage> npm;
  std::filesystem::path package_folder;  // where a Debian package puts it, or ""
  std::string package;                   // the name of that package, or ""
  std::string spec_kind;                 // the kind of SPEC that reads its folder
};

const std::vector<CatalogEntry>& catalog();
const CatalogEntry* find_in_catalog(const std::string& name);  // nullptr: no such name

// $XDG_CACHE_HOME/pumice, or ~/.cache/pumice. Throws Error if neither variable is set.
std::filesystem::path cache_root();
std::filesystem::path cache_folder(const CatalogEntry& entry);

// The cache if the data set is there, else the folder of its package, else nothing.
std::optional<std::filesystem::path> installed_folder(const CatalogEntry& entry);

const std::vector<std::string>& fashion_mnist_class_names();

}  // namespace pumice
