// What a model needs to forget quickly, as one file.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pumice/data/data_request.h"
#include "pumice/data/dataset.h"
#include "pumice/data/normalization.h"
#include "pumice/forgetting/loss.h"

namespace pumice {

// The numbers that stay the same from one request to the next.
struct IndexTerms {
  std::string key;                     // of all keyed digests, 64 hex digits
  std::string model;                   // digest of the point of linearisation
  std::optional<std::string> start;    // digest of w0
  std::string decay_centre = "start";  // or "zero", "self"
  double weight_decay = 0;             // λ of the training
  double ridge = 0;                    // λ of the solve
  double scale = 1;                    // s along δ, fixed: a sequence of requests equals its union
  std::string scale_rule;              // where it came from
  Loss loss = Loss::cross_entropy;
  ClassTable classes;
  Normalization normalization;
  DataRequest data;
  std::int64_t built_examples = 0;  // N of the training
  std::int64_t point_examples = 0;  // N when the point of linearisation was taken
  // Shares forgotten above which to linearise again (since the point), or to retrain (since the
  // training); docs/requests.md has the measurements.
  double refresh_above = 0.05;
  double retrain_above = 0.2;
};

// Rows are the examples that are left, in the order of the training set. Ids can be guessed, so
// only keyed digests of them are kept; the key lies in the same file, and both leave the house
// together or not at all. Nothing here is about a forgotten example alone; but `wlin`, and the
// weights at the point, were computed with it (until refreshed).
struct IndexContent {
  IndexTerms terms;
  at::Tensor kernel;                // Θ = J Jᵀ, (N·c)×(N·c), float64, symmetric
  at::Tensor residual;              // r, N×c, float64
  at::Tensor displaced;             // J u, N×c, float64
  at::Tensor labels;                // N, int64
  at::Tensor wlin;                  // wlin(D) at the point: p, float64
  at::Tensor centre;                // where weight decay pulls to: p, as the weights
  std::vector<std::string> ids;     // keyed digests, 32 bytes each
  std::vector<std::string> pixels;  // the same of the images

  std::int64_t examples() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t classes() const { return residual.size(1); }
};

// A safetensors file. The kernel is stored as its lower triangle, row by row, in float64: as large
// as the whole in float32, and nothing is lost between the kernel that was computed and the one
// that is factorised (whose condition may be 1e5). Throws Error.
void write_index_content(const std::filesystem::path& path, const IndexContent& content);
IndexContent read_index_content(const std::filesystem::path& path);

// Keyed digests of an example's id and of its picture, 32 bytes.
std::string id_digest(const std::string& key, const std::string& id);
std::string pixels_digest(const std::string& key, const at::Tensor& image);

// The same without the other rows. `rows` ascending.
IndexContent with_rows(const IndexContent& content, const std::vector<std::int64_t>& rows);

// The positions of these ids in the index. Throws Error if one is not there, is named twice, or if
// there are none.
std::vector<std::int64_t> rows_named(const IndexContent& content,
                                     const std::vector<std::string>& ids);

// The examples of all rows, in their order, from data that may hold more. Throws Error if classes
// differ, or if a row is missing or has another picture or label.
Dataset examples_of(const IndexContent& content, const Dataset& data);

// Bytes that reading, dropping rows and factorising take at their worst: 32·(N·c)².
double index_bytes(std::int64_t examples, std::int64_t classes);

}  // namespace pumice
