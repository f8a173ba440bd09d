// Labelled images with stable names.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pumice {

// The classes of a source or of a selection from it. Inside the program a label is a position in
// this table; people and files speak of original labels (CIFAR-10's 7) or names ("horse").
struct ClassTable {
  std::vector<std::string> names;
  std::vector<std::int64_t> original_labels;

  std::int64_t size() const { return static_cast<std::int64_t>(names.size()); }
  bool operator==(const ClassTable&) const = default;
};

struct Dataset {
  at::Tensor images;  // N×C×H×W: uint8 (0 … 255), or float32, which is used as it is
  at::Tensor labels;  // N, int64, each in 0 … classes.size()-1
  std::vector<std::string> ids;  // N, unique: "train/00017", or the path of a file in its folder
  ClassTable classes;

  std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
};

// Throws Error unless shapes and types are as above, labels are in range and ids are unique.
void check(const Dataset& dataset);

// Same content in the same order, same digest: images, labels, ids and classes all count.
std::string digest(const Dataset& dataset);

// The examples at these positions, in the order given. Positions may repeat (and then so do ids).
Dataset subset(const Dataset& dataset, const std::vector<std::int64_t>& positions);

// Positions by label: result[k] lists the examples of class k in ascending order.
std::vector<std::vector<std::int64_t>> positions_by_class(const std::vector<std::int64_t>& labels,
                                                          std::int64_t class_count);

}  // namespace pumice
