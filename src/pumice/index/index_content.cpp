#include "pumice/index/index_content.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "pumice/core/digest.h"
#include "pumice/core/error.h"
#include "pumice/forgetting/dual_solve.h"
#include "pumice/model/safetensors.h"

namespace pumice {
namespace {

using Json = nlohmann::json;

constexpr const char* format = "pumice index 1";
constexpr std::int64_t digest_bytes = 32;

at::Tensor packed(const at::Tensor& kernel) {
  const std::int64_t size = kernel.size(0);
  const at::Tensor whole = kernel.contiguous();
  at::Tensor triangle = at::empty({size * (size + 1) / 2}, at::kDouble);
  auto* out = triangle.data_ptr<double>();
  for (std::int64_t i = 0; i < size; ++i) {
    out = std::copy_n(whole.data_ptr<double>() + i * size, i + 1, out);
  }
  return triangle;
}

at::Tensor unpacked(const at::Tensor& triangle, std::int64_t size) {
  at::Tensor whole = at::empty({size, size}, at::kDouble);
  auto* out = whole.data_ptr<double>();
  const auto* in = triangle.data_ptr<double>();
  for (std::int64_t i = 0; i < size; ++i, in += i) std::copy_n(in, i + 1, out + i * size);
  // The mirror image, in tiles: a column at a time would miss the cache with every number.
  constexpr std::int64_t tile = 64;
  for (std::int64_t row = 0; row < size; row += tile) {
    for (std::int64_t column = 0; column <= row; column += tile) {
      for (std::int64_t i = row; i < std::min(row + tile, size); ++i) {
        for (std::int64_t j = column; j < std::min(column + tile, i); ++j) {
          out[j * size + i] = out[i * size + j];
        }
      }
    }
  }
  return whole;
}

std::string raw(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

at::Tensor digest_tensor(const std::vector<std::string>& digests) {
  at::Tensor bytes =
      at::empty({static_cast<std::int64_t>(digests.size()), digest_bytes}, at::kByte);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    std::memcpy(bytes.data_ptr<std::uint8_t>() + i * digest_bytes, digests[i].data(), digest_bytes);
  }
  return bytes;
}

std::vector<std::string> digest_list(const at::Tensor& bytes) {
  std::vector<std::string> digests;
  for (std::int64_t i = 0; i < bytes.size(0); ++i) {
    digests.emplace_back(
        reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>()) + i * digest_bytes,
        digest_bytes);
  }
  return digests;
}

Json to_json(const IndexTerms& terms) {
  Json json{{"key", terms.key},
            {"model", terms.model},
            {"decay_centre", terms.decay_centre},
            {"weight_decay", terms.weight_decay},
            {"ridge", terms.ridge},
            {"curvature", curvature_name(Curvature::identity)},
            {"scale", terms.scale},
            {"scale_rule", terms.scale_rule},
            {"loss", loss_name(terms.loss)},
            {"class_names", terms.classes.names},
            {"original_labels", terms.classes.original_labels},
            {"mean", terms.normalization.mean},
            {"std", terms.normalization.deviation},
            {"data", to_json(terms.data)},
            {"built_examples", terms.built_examples},
            {"point_examples", terms.point_examples},
            {"refresh_above", terms.refresh_above},
            {"retrain_above", terms.retrain_above}};
  if (terms.start) json["start"] = *terms.start;
  return json;
}

IndexTerms terms_from_json(const Json& json) {
  IndexTerms terms{.key = json.at("key"),
                   .model = json.at("model"),
                   .start = {},
                   .decay_centre = json.at("decay_centre"),
                   .weight_decay = json.at("weight_decay"),
                   .ridge = json.at("ridge"),
                   .scale = json.at("scale"),
                   .scale_rule = json.at("scale_rule"),
                   .loss = loss_named(json.at("loss").get<std::string>()),
                   .classes = {json.at("class_names").get<std::vector<std::string>>(),
                               json.at("original_labels").get<std::vector<std::int64_t>>()},
                   .normalization = {json.at("mean").get<std::vector<double>>(),
                                     json.at("std").get<std::vector<double>>()},
                   .data = data_request_from_json(json.at("data")),
                   .built_examples = json.at("built_examples"),
                   .point_examples = json.at("point_examples"),
                   .refresh_above = json.at("refresh_above"),
                   .retrain_above = json.at("retrain_above")};
  if (json.contains("start")) terms.start = json.at("start").get<std::string>();
  return terms;
}

std::string first_few(const std::vector<std::string>& ids) {
  std::string list = text(ids.size(), ids.size() == 1 ? " id (" : " ids (");
  const std::size_t shown = std::min<std::size_t>(3, ids.size());
  for (std::size_t i = 0; i < shown; ++i) list += text(i ? ", '" : "'", ids[i], "'");
  return list + (ids.size() > shown ? ", …)" : ")");
}

std::vector<std::string> chosen(const std::vector<std::string>& by_row,
                                const std::vector<std::int64_t>& rows) {
  std::vector<std::string> kept;
  kept.reserve(rows.size());
  for (const std::int64_t row : rows) kept.push_back(by_row[static_cast<std::size_t>(row)]);
  return kept;
}

}  // namespace

std::string id_digest(const std::string& key, const std::string& id) {
  Digest digest(key);
  digest.add_text("id");
  digest.add_text(id);
  return raw(digest.hex());
}

std::string pixels_digest(const std::string& key, const at::Tensor& image) {
  Digest digest(key);
  const at::Tensor own = image.contiguous();
  digest.add_text(c10::toString(own.scalar_type()));
  for (const std::int64_t extent : own.sizes()) {
    digest.add_number(static_cast<std::uint64_t>(extent));
  }
  digest.add_bytes(own.data_ptr(), own.nbytes());
  return raw(digest.hex());
}

void write_index_content(const std::filesystem::path& path, const IndexContent& content) {
  write_safetensors(path, {.tensors = {{"kernel", packed(content.kernel)},
                                       {"residual", content.residual},
                                       {"displaced", content.displaced},
                                       {"labels", content.labels},
                                       {"wlin", content.wlin},
                                       {"centre", content.centre},
                                       {"ids", digest_tensor(content.ids)},
                                       {"pixels", digest_tensor(content.pixels)}},
                           .metadata = {{"format", format},
                                        {"terms", to_json(content.terms).dump()},
                                        {"sensitive",
                                         "holds the weights at the point of linearisation in "
                                         "other words; never to be released"}}});
}

IndexContent read_index_content(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  if (!file.metadata.contains("format") || file.metadata.at("format") != format) {
    fail(path.string(), ": is no index of pumice that this version reads");
  }
  const std::unordered_map<std::string, at::Tensor> tensors(file.tensors.begin(),
                                                            file.tensors.end());
  try {
    IndexContent content{.terms = terms_from_json(Json::parse(file.metadata.at("terms"))),
                         .kernel = {},
                         .residual = tensors.at("residual"),
                         .displaced = tensors.at("displaced"),
                         .labels = tensors.at("labels"),
                         .wlin = tensors.at("wlin"),
                         .centre = tensors.at("centre"),
                         .ids = digest_list(tensors.at("ids")),
                         .pixels = digest_list(tensors.at("pixels"))};
    content.kernel = unpacked(tensors.at("kernel"), content.residual.numel());
    return content;
  } catch (const Json::exception& reason) {
    fail(path.string(), ": its terms cannot be read, ", reason.what());
  } catch (const std::out_of_range&) {
    fail(path.string(), ": a part of it is missing");
  }
}

IndexContent with_rows(const IndexContent& content, const std::vector<std::int64_t>& rows) {
  IndexContent kept = content;
  kept.kernel = kernel_of(content.kernel, rows, content.classes());
  kept.residual = chosen(content.residual, rows);
  kept.displaced = chosen(content.displaced, rows);
  kept.labels = chosen(content.labels, rows);
  kept.ids = chosen(content.ids, rows);
  kept.pixels = chosen(content.pixels, rows);
  return kept;
}

std::vector<std::int64_t> rows_named(const IndexContent& content,
                                     const std::vector<std::string>& ids) {
  if (ids.empty()) fail("cohort: empty, must name at least one example of the index");
  std::unordered_map<std::string, std::int64_t> row_of;
  for (std::int64_t row = 0; row < content.examples(); ++row) {
    row_of.emplace(content.ids[static_cast<std::size_t>(row)], row);
  }
  std::vector<std::int64_t> rows;
  std::vector<std::string> unknown, repeated;
  std::unordered_set<std::string> seen;
  for (const std::string& id : ids) {
    const auto found = row_of.find(id_digest(content.terms.key, id));
    if (found == row_of.end()) {
      unknown.push_back(id);
    } else if (!seen.insert(id).second) {
      repeated.push_back(id);
    } else {
      rows.push_back(found->second);
    }
  }
  if (!unknown.empty()) {
    fail("cohort: ", first_few(unknown), " not among the ", content.examples(),
         " examples of the index, was forgotten already or never part of it");
  }
  if (!repeated.empty()) {
    fail("cohort: ", first_few(repeated), " repeated, each must be named once");
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

Dataset examples_of(const IndexContent& content, const Dataset& data) {
  const IndexTerms& terms = content.terms;
  if (!(data.classes == terms.classes)) {
    fail("data: ", data.classes.size(), " classes, must be the ", terms.classes.size(),
         " of the index, with the same names and labels");
  }
  std::unordered_map<std::string, std::int64_t> position_of;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    position_of.emplace(id_digest(terms.key, data.ids[static_cast<std::size_t>(i)]), i);
  }
  std::vector<std::int64_t> positions;
  std::int64_t missing = 0;
  for (std::int64_t row = 0; row < content.examples(); ++row) {
    const auto found = position_of.find(content.ids[static_cast<std::size_t>(row)]);
    if (found == position_of.end()) {
      ++missing;
      continue;
    }
    const std::int64_t position = found->second;
    if (pixels_digest(terms.key, data.images[position]) !=
            content.pixels[static_cast<std::size_t>(row)] ||
        data.labels[position].item<std::int64_t>() != content.labels[row].item<std::int64_t>()) {
      fail("data: '", data.ids[static_cast<std::size_t>(position)],
           "' has another picture or label than when the index was built");
    }
    positions.push_back(position);
  }
  if (missing > 0) {
    fail("data: ", missing, " of the ", content.examples(),
         " examples that the index still holds are missing; all that are not forgotten must be "
         "there");
  }
  return subset(data, positions);
}

double index_bytes(std::int64_t examples, std::int64_t classes) {
  const double rows = static_cast<double>(examples) * static_cast<double>(classes);
  return 32 * rows * rows;
}

}  // namespace pumice
