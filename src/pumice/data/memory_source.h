// A source whose images are all in memory: idx, CIFAR and npz files end up here.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <string>
#include <vector>

#include "pumice/data/data_source.h"

namespace pumice {

struct MemoryPart {
  Listing listing;
  at::Tensor images;  // n×C×H×W, undefined if the part is empty
};

// Keeps the size and channels of its images unless the options say otherwise; only selected images
// are converted. Throws Error, prefixed with `name`, if an id is empty, repeated or has a line
// break.
class MemorySource final : public DataSource {
 public:
  MemorySource(std::string name, ClassTable classes, MemoryPart train, MemoryPart test,
               SourceOptions options);

  const ClassTable& classes() const override { return classes_; }
  const Listing& listing(Part part) const override { return part_of(part).listing; }
  at::Tensor images(Part part, const std::vector<std::int64_t>& positions) const override;

 private:
  const MemoryPart& part_of(Part part) const { return part == Part::train ? train_ : test_; }

  ClassTable classes_;
  MemoryPart train_;
  MemoryPart test_;
  SourceOptions options_;
};

// "train/00017": the part and the position in its files, at least five digits.
std::string numbered_id(const std::string& prefix, std::int64_t position);

// Ids are names in files of one id a line: each must be non-empty, unique and without a line break.
void check_ids(const std::string& name, const Listing& listing);

}  // namespace pumice
