// Lacuna: small face data sets, cut from a large collection with many pictures of each identity.
//
// From the identities with enough pictures, `small` are drawn for out/lacuna-<small> and `large`
// others for out/lacuna-<large> (stream "lacuna"); of each, `pictures` are drawn (stream
// "lacuna/<identity>"), of which the first `test` are test. Written as PNG:
// out/lacuna-N/{train,test}/identity/name.png.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pumice {

struct LacunaOptions {
  std::int64_t small = 10;      // identities of the first set; 0: do not make it
  std::int64_t large = 100;     // identities of the second set; 0: do not make it
  std::int64_t pictures = 500;  // of each identity, training and test together
  std::int64_t test = 100;
  std::int64_t image_size = 32;
  std::uint64_t seed = 1;
};

struct LacunaSummary {
  std::int64_t identities_found = 0;     // in `from`
  std::int64_t identities_eligible = 0;  // with enough pictures
  std::vector<std::filesystem::path> folders;
};

// `from` is DIR/identity/*.jpg or DIR/{train,test}/identity/*.jpg; an identity's pictures from both
// are pooled. A set appears whole or not at all. Throws Error if an output exists, if there are too
// few identities (with the number found), or if a picture is damaged. Cost: decoding every picture
// drawn.
LacunaSummary make_lacuna(const std::filesystem::path& from, const std::filesystem::path& out,
                          const LacunaOptions& options);

}  // namespace pumice
