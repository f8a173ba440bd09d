#include "pumice/linearization/contraction.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <utility>

#include "pumice/core/error.h"
#include "pumice/core/suggestion.h"
#include "pumice/linalg/blas.h"
#include "pumice/linearization/class_products.h"

namespace pumice {
namespace {

constexpr std::array<std::pair<Contraction, const char*>, 4> names{
    {{Contraction::explicit_rows, "explicit"},
     {Contraction::hadamard, "hadamard"},
     {Contraction::class_sharing, "class-sharing"},
     {Contraction::linear_tail, "linear-tail"}}};

// Columns of the panel that explicit rows are formed in: wide enough for the product to run at full
// speed.
constexpr std::int64_t good_panel_width = 16384;
// Values of B that are transformed before they are multiplied: few enough to stay near. 4 Ki and 8
// Ki (first-level cache) were slower by a third and by a twentieth on a processor with AVX-512.
constexpr std::int64_t transformed_values = 16 << 10;
// Positions that are transformed together, at least: each value that is read is then used so many
// times.
constexpr std::int64_t transformed_positions = 4;

// Rows of panels at least so wide are formed without packing: on one core of a Zen 4 85 against 65
// GFLOP/s for 16 positions, 98 against 93 for 1,024, and seven hundredths of a whole audit.
constexpr std::int64_t transformed_columns = 32;

// Examples that make it worth waking another thread, for so many operations each.
std::int64_t grain(std::int64_t operations) {
  return std::max<std::int64_t>(1, (64 << 10) / std::max<std::int64_t>(1, operations));
}

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

std::int64_t seeds_of(const StoredSignals& signals) {
  return signals.gradients.size(2);
}
std::int64_t examples_of(const StoredSignals& signals) {
  return signals.gradients.size(0);
}

// Patches of one example and group, all uses stacked: T × range.width().
template <typename Scalar>
void example_patches(const Layer& layer, const StoredSignals& signals, std::int64_t example,
                     std::int64_t group, const PatchRange& range, Scalar* patches) {
  for (std::size_t use = 0; use < layer.unfoldings.size(); ++use) {
    const Unfolding& unfolding = layer.unfoldings[use];
    const Scalar* input = signals.inputs[use].data_ptr<Scalar>() + example * unfolding.input_size();
    unfold(unfolding, input, group, range, patches);
    patches += unfolding.positions() * range.width();
  }
}

template <typename Scalar>
at::Tensor patches_of(const Layer& layer, const StoredSignals& signals, Range examples,
                      std::int64_t group) {
  const PatchRange whole = whole_patch(layer.unfoldings.front());
  at::Tensor patches =
      at::empty({examples.size() * layer.positions, layer.columns}, signals.gradients.options());
  Scalar* to = patches.data_ptr<Scalar>();
  at::parallel_for(0, examples.size(), grain(4 * layer.positions * layer.columns),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       example_patches(layer, signals, examples.begin + i, group, whole,
                                       to + i * layer.positions * layer.columns);
                     }
                   });
  return patches;
}

// Rows of one example, S × (O·range.width()): all seeds at once, (S·O)×T times T×K. `patches` has
// room for T × range.width().
template <typename Scalar>
void form_example_rows(const Layer& layer, const StoredSignals& signals, std::int64_t example,
                       const PatchRange& range, Scalar* patches, Scalar* rows) {
  const std::int64_t seeds = seeds_of(signals);
  const std::int64_t width = range.width();
  const std::int64_t group_outputs = layer.outputs / layer.groups;
  const Scalar* b =
      signals.gradients.data_ptr<Scalar>() + example * layer.positions * seeds * layer.outputs;
  for (std::int64_t group = 0; group < layer.groups; ++group) {
    example_patches(layer, signals, example, group, range, patches);
    if (layer.groups == 1 && width >= transformed_columns) {
      transform_positions(seeds * layer.outputs, width, layer.positions, b, seeds * layer.outputs,
                          patches, width, rows, width);
      continue;
    }
    if (layer.groups == 1) {
      gemm(Transpose::yes, Transpose::no, seeds * layer.outputs, width, layer.positions, b,
           seeds * layer.outputs, patches, width, 0, rows, width);
      continue;
    }
    for (std::int64_t s = 0; s < seeds; ++s) {
      gemm(Transpose::yes, Transpose::no, group_outputs, width, layer.positions,
           b + s * layer.outputs + group * group_outputs, seeds * layer.outputs, patches, width, 0,
           rows + (s * layer.outputs + group * group_outputs) * width, width);
    }
  }
}

// Calls visit(example, patches) for all examples, on all threads; `patches` is the thread's own.
template <typename Scalar, typename Visit>
void with_patches(const Layer& layer, const StoredSignals& signals, const PatchRange& range,
                  const Visit& visit) {
  const std::int64_t operations =
      seeds_of(signals) * layer.positions * layer.outputs * range.width();
  SerialBlas serial;
  at::parallel_for(0, examples_of(signals), grain(operations),
                   [&](std::int64_t begin, std::int64_t end) {
                     const auto patches = std::make_unique_for_overwrite<Scalar[]>(
                         static_cast<std::size_t>(layer.positions * range.width()));
                     for (std::int64_t i = begin; i < end; ++i) visit(i, patches.get());
                   });
}

template <typename Scalar>
void form_rows_as(const Layer& layer, const StoredSignals& signals, const PatchRange& range,
                  Scalar* rows) {
  const std::int64_t each = seeds_of(signals) * layer.outputs * range.width();
  with_patches<Scalar>(layer, signals, range, [&](std::int64_t i, Scalar* patches) {
    form_example_rows(layer, signals, i, range, patches, rows + i * each);
  });
}

void contract_explicitly(const Layer& layer, const StoredSignals& left, const StoredSignals& right,
                         const ContractionOptions& options, at::Tensor& sum) {
  const bool symmetric = &left == &right;
  const std::int64_t rows = sum.size(0) + (symmetric ? 0 : sum.size(1));
  const std::int64_t value_size = sum.element_size();
  const std::int64_t affordable = options.workspace / (rows * value_size);
  for (const PatchRange& range : column_panels(layer, std::min(affordable, good_panel_width))) {
    const auto formed = [&](const StoredSignals& signals) {
      at::Tensor panel = at::empty(
          {examples_of(signals) * seeds_of(signals), layer.outputs * range.width()}, sum.options());
      form_rows(layer, signals, range, panel);
      if (options.scale) panel.mul_(in_range(layer, *options.scale, range));
      return panel;
    };
    const at::Tensor left_panel = formed(left);
    if (symmetric) {
      contract_rows(left_panel, left_panel, sum);
    } else {
      contract_rows(left_panel, formed(right), sum);
    }
  }
}

// Rectangles of pairs of examples. In the symmetric case only those that touch the lower triangle.
struct Tile {
  Range left, right;
  bool diagonal;  // left and right are the same examples of a symmetric kernel
};

std::vector<Tile> tiles(std::int64_t left, std::int64_t right, std::int64_t size, bool symmetric) {
  std::vector<Tile> all;
  for (std::int64_t j = 0; j < right; j += size) {
    for (std::int64_t i = symmetric ? j : 0; i < left; i += size) {
      all.push_back(
          {{i, std::min(i + size, left)}, {j, std::min(j + size, right)}, symmetric && i == j});
    }
  }
  return all;
}

// left·rightᵀ of a tile, rows of the examples on both sides. On the diagonal of a symmetric kernel
// blocks of `block` rows above the diagonal are undefined.
template <typename Scalar>
at::Tensor tile_products(const at::Tensor& left, const at::Tensor& right, std::int64_t block,
                         bool diagonal) {
  at::Tensor products = at::empty({left.size(0), right.size(0)}, left.options());
  Scalar* to = products.data_ptr<Scalar>();
  const std::int64_t columns = left.size(1);
  if (!diagonal) {
    spread_gemm<Scalar>(left.size(0), right.size(0), columns, left.data_ptr<Scalar>(), columns,
                        right.data_ptr<Scalar>(), columns, 0, to, right.size(0));
    return products;
  }
  const std::int64_t size = left.size(0);
  spread_syrk<Scalar>(size, columns, left.data_ptr<Scalar>(), columns, 0, to, size);
  for (std::int64_t row = 0; row < size; ++row) {  // complete the blocks of one example
    const std::int64_t end = (row / block + 1) * block;
    for (std::int64_t column = row + 1; column < end; ++column) {
      to[row * size + column] = to[column * size + row];
    }
  }
  return products;
}

// A Aᵀ of a tile: (examples·T) × (examples·T).
template <typename Scalar>
at::Tensor patch_products(const Layer& layer, const StoredSignals& left_signals,
                          const StoredSignals& right_signals, const Tile& tile,
                          std::int64_t group) {
  const at::Tensor left = patches_of<Scalar>(layer, left_signals, tile.left, group);
  const at::Tensor right =
      tile.diagonal ? left : patches_of<Scalar>(layer, right_signals, tile.right, group);
  return tile_products<Scalar>(left, right, layer.positions, tile.diagonal);
}

// Products of pixels of a tile: (examples·pixels) × (examples·pixels).
template <typename Scalar>
at::Tensor pixel_products(const Layer& layer, const StoredSignals& left_signals,
                          const StoredSignals& right_signals, const Tile& tile,
                          std::int64_t group) {
  const Unfolding& unfolding = layer.unfoldings.front();
  const std::int64_t channels = unfolding.group_channels();
  const auto pixels = [&](const StoredSignals& signals, const Range& examples) {
    return signals.inputs.front()
        .narrow(0, examples.begin, examples.size())
        .view({-1, unfolding.channels})
        .narrow(1, group * channels, channels)
        .contiguous();
  };
  const at::Tensor left = pixels(left_signals, tile.left);
  const at::Tensor right = tile.diagonal ? left : pixels(right_signals, tile.right);
  return tile_products<Scalar>(left, right, unfolding.pixels(), tile.diagonal);
}

// A_i A_jᵀ (T×T) from the products of pixels of one pair, by summing over taps.
template <typename Scalar>
void sum_taps(const std::vector<std::vector<PixelRun>>& runs, const Scalar* pixels,
              std::int64_t pixels_ld, std::int64_t positions, Scalar* products) {
  std::fill_n(products, positions * positions, Scalar{0});
  for (const std::vector<PixelRun>& of_tap : runs) {
    for (const PixelRun& rows : of_tap) {
      for (std::int64_t row = 0; row < rows.length; ++row) {
        const Scalar* from = pixels + (rows.pixel + row) * pixels_ld;
        Scalar* to = products + (rows.position + row) * positions;
        for (const PixelRun& columns : of_tap) {
          for (std::int64_t column = 0; column < columns.length; ++column) {
            to[columns.position + column] += from[columns.pixel + column];
          }
        }
      }
    }
  }
}

bool shares_pixels(const Layer& layer) {
  if (layer.unfoldings.size() != 1) return false;
  const Unfolding& unfolding = layer.unfoldings.front();
  const std::int64_t pixels = unfolding.pixels();
  return 2 * pixels * pixels <= layer.positions * layer.positions * unfolding.taps();
}

// How many examples a tile may have on each side for `values(size)` to stay within the workspace.
template <typename Values>
std::int64_t tile_size(std::int64_t workspace, std::int64_t value_size, std::int64_t largest,
                       const Values& values) {
  std::int64_t size = largest;
  while (size > 1 && values(size) * value_size > workspace) size = (size + 1) / 2;
  return size;
}

// Values that a tile of `size` examples a side allocates.
std::int64_t sharing_values(const Layer& layer, std::int64_t size) {
  const bool by_pixel = shares_pixels(layer);
  const std::int64_t rows = size * (by_pixel ? layer.unfoldings.front().pixels() : layer.positions);
  return 2 * rows * (by_pixel ? layer.unfoldings.front().group_channels() : layer.columns) +
         rows * rows;
}

std::int64_t hadamard_values(const Layer& layer, std::int64_t seeds, std::int64_t size) {
  const std::int64_t rows = size * layer.positions;
  return 2 * rows * layer.columns + rows * rows + rows * rows * seeds * seeds;
}

template <typename Scalar>
void share_classes(const Layer& layer, const StoredSignals& left, const StoredSignals& right,
                   const ContractionOptions& options, at::Tensor& sum) {
  const bool symmetric = &left == &right;
  const std::int64_t seeds = seeds_of(left);
  const std::int64_t positions = layer.positions;
  const std::int64_t group_outputs = layer.outputs / layer.groups;
  const std::int64_t b_ld = seeds * layer.outputs;  // from one position to the next
  const std::int64_t at_once = std::min(
      positions, std::max(transformed_positions, transformed_values / (seeds * group_outputs)));
  const std::int64_t seeds_at_once =
      std::clamp<std::int64_t>(transformed_values / (at_once * group_outputs), 1, seeds);
  const std::int64_t u_ld = seeds_at_once * group_outputs;
  const std::int64_t size =
      tile_size(options.workspace, sum.element_size(), 128,
                [&](std::int64_t examples) { return sharing_values(layer, examples); });
  const bool by_pixel = shares_pixels(layer);
  const std::vector<std::vector<PixelRun>> runs =
      by_pixel ? pixel_runs(layer.unfoldings.front()) : std::vector<std::vector<PixelRun>>{};
  const std::int64_t block = by_pixel ? layer.unfoldings.front().pixels() : positions;
  const Scalar* left_b = left.gradients.data_ptr<Scalar>();
  const Scalar* right_b = right.gradients.data_ptr<Scalar>();
  Scalar* out = sum.data_ptr<Scalar>();
  const std::int64_t out_ld = sum.size(1);

  for (std::int64_t group = 0; group < layer.groups; ++group) {
    const std::int64_t from_output = group * group_outputs;
    for (const Tile& tile : tiles(examples_of(left), examples_of(right), size, symmetric)) {
      const at::Tensor products = by_pixel
                                      ? pixel_products<Scalar>(layer, left, right, tile, group)
                                      : patch_products<Scalar>(layer, left, right, tile, group);
      const std::int64_t products_ld = products.size(1);
      const std::int64_t work =
          tile.right.size() * positions * (positions + seeds) * seeds * group_outputs;
      at::parallel_for(0, tile.left.size(), grain(work), [&](std::int64_t begin, std::int64_t end) {
        std::vector<Scalar> transformed(static_cast<std::size_t>(at_once * u_ld));
        // A Aᵀ of one pair: as its values lie in their tile, they would fall on the same places of
        // the cache.
        std::vector<Scalar> weights(static_cast<std::size_t>(positions * positions));
        for (std::int64_t i = begin; i < end; ++i) {
          const Scalar* of_example = products.data_ptr<Scalar>() + i * block * products_ld;
          const Scalar* b = left_b + (tile.left.begin + i) * positions * b_ld + from_output;
          const std::int64_t last = tile.diagonal ? i + 1 : tile.right.size();
          for (std::int64_t j = 0; j < last; ++j) {
            if (by_pixel) {
              sum_taps(runs, of_example + j * block, products_ld, positions, weights.data());
            } else {
              for (std::int64_t t = 0; t < positions; ++t) {
                std::copy_n(of_example + t * products_ld + j * positions, positions,
                            weights.data() + t * positions);
              }
            }
            const Scalar* other = right_b + (tile.right.begin + j) * positions * b_ld + from_output;
            for (std::int64_t t = 0; t < positions; t += at_once) {
              const std::int64_t count = std::min(at_once, positions - t);
              for (std::int64_t s = 0; s < seeds; s += seeds_at_once) {
                const std::int64_t width = std::min(seeds_at_once, seeds - s);
                // U (count × width·O): a few rows of (A_i A_jᵀ)ᵀ B_i; seeds lie side by side only
                // if there is one group.
                const bool together = layer.groups == 1;
                for (std::int64_t k = 0; k < (together ? 1 : width); ++k) {
                  transform_positions(count, (together ? width : 1) * group_outputs, positions,
                                      weights.data() + t, positions, b + (s + k) * layer.outputs,
                                      b_ld, transformed.data() + k * group_outputs, u_ld);
                }
                add_class_products(width, seeds, count, group_outputs, transformed.data(), u_ld,
                                   group_outputs, other + t * b_ld, b_ld, layer.outputs,
                                   out + ((tile.left.begin + i) * seeds + s) * out_ld +
                                       (tile.right.begin + j) * seeds,
                                   out_ld);
              }
            }
          }
        }
      });
    }
  }
}

template <typename Scalar>
void multiply_hadamard(const Layer& layer, const StoredSignals& left, const StoredSignals& right,
                       const ContractionOptions& options, at::Tensor& sum) {
  const bool symmetric = &left == &right;
  const std::int64_t seeds = seeds_of(left);
  const std::int64_t positions = layer.positions;
  const std::int64_t group_outputs = layer.outputs / layer.groups;
  const std::int64_t size =
      tile_size(options.workspace, sum.element_size(), 512,
                [&](std::int64_t examples) { return hadamard_values(layer, seeds, examples); });
  Scalar* out = sum.data_ptr<Scalar>();
  const std::int64_t out_ld = sum.size(1);

  for (std::int64_t group = 0; group < layer.groups; ++group) {
    for (const Tile& tile : tiles(examples_of(left), examples_of(right), size, symmetric)) {
      const at::Tensor products = patch_products<Scalar>(layer, left, right, tile, group);
      // B Bᵀ with rows (example, position, seed)
      const std::int64_t left_rows = tile.left.size() * positions * seeds;
      const std::int64_t right_rows = tile.right.size() * positions * seeds;
      const at::Tensor overlaps = at::empty({left_rows, right_rows}, sum.options());
      const auto of = [&](const StoredSignals& signals, const Range& examples) {
        return signals.gradients.data_ptr<Scalar>() +
               examples.begin * positions * seeds * layer.outputs + group * group_outputs;
      };
      spread_gemm<Scalar>(left_rows, right_rows, group_outputs, of(left, tile.left), layer.outputs,
                          of(right, tile.right), layer.outputs, 0, overlaps.data_ptr<Scalar>(),
                          right_rows);
      const std::int64_t work = positions * seeds * right_rows;
      at::parallel_for(0, tile.left.size(), grain(work), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t last = tile.diagonal ? i + 1 : tile.right.size();
          for (std::int64_t t = 0; t < positions; ++t) {
            const Scalar* weights =
                products.data_ptr<Scalar>() + (i * positions + t) * products.size(1);
            for (std::int64_t s = 0; s < seeds; ++s) {
              const Scalar* overlap =
                  overlaps.data_ptr<Scalar>() + ((i * positions + t) * seeds + s) * right_rows;
              Scalar* row =
                  out + ((tile.left.begin + i) * seeds + s) * out_ld + tile.right.begin * seeds;
              for (std::int64_t j = 0; j < last; ++j) {
                for (std::int64_t u = 0; u < positions; ++u) {
                  const Scalar weight = weights[j * positions + u];
                  const Scalar* from = overlap + (j * positions + u) * seeds;
                  for (std::int64_t r = 0; r < seeds; ++r) row[j * seeds + r] += weight * from[r];
                }
              }
            }
          }
        }
      });
    }
  }
}

}  // namespace

std::string contraction_name(Contraction contraction) {
  for (const auto& [value, name] : names) {
    if (value == contraction) return name;
  }
  assert(false);
  return {};
}

Contraction contraction_named(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [value, known_name] : names) {
    if (name == known_name) return value;
    known.emplace_back(known_name);
  }
  fail("contraction: '", name, "' is unknown", suggestion(name, known));
}

Layer pooled_layer(const Layer& layer) {
  Layer pooled = layer;
  pooled.positions = 1;
  pooled.unfoldings = {Unfolding{.channels = layer.columns * layer.groups, .groups = layer.groups}};
  return pooled;
}

at::Tensor pooled_patches(const Layer& layer, const std::vector<at::Tensor>& inputs) {
  const std::int64_t examples = inputs.front().size(0);
  at::Tensor pooled = at::empty({examples, layer.groups, layer.columns}, inputs.front().options());
  StoredSignals signals{inputs, at::empty({examples, 0, 1, 1}, inputs.front().options())};
  AT_DISPATCH_FLOATING_TYPES(pooled.scalar_type(), "pooled_patches", [&] {
    for (std::int64_t i = 0; i < examples; ++i) {
      for (std::int64_t group = 0; group < layer.groups; ++group) {
        const at::Tensor patches = patches_of<scalar_t>(layer, signals, {i, i + 1}, group);
        pooled[i][group].copy_(patches.sum(0));
      }
    }
  });
  return pooled.view({examples, -1});
}

std::vector<PatchRange> column_panels(const Layer& layer, std::int64_t width) {
  const Unfolding& unfolding = layer.unfoldings.front();
  const std::int64_t channels = unfolding.group_channels();
  const std::int64_t most = std::max<std::int64_t>(1, width / layer.outputs);
  // As many panels as needed, about equal: a narrow last one would be slow.
  const auto evenly = [](std::int64_t total, std::int64_t largest) {
    const std::int64_t panels = (total + largest - 1) / largest;
    return (total + panels - 1) / panels;
  };
  std::vector<PatchRange> all;
  if (most >= channels) {
    const std::int64_t taps = evenly(unfolding.taps(), most / channels);
    for (std::int64_t tap = 0; tap < unfolding.taps(); tap += taps) {
      all.push_back({tap, std::min(tap + taps, unfolding.taps()), 0, channels});
    }
    return all;
  }
  const std::int64_t each = evenly(channels, most);
  for (std::int64_t tap = 0; tap < unfolding.taps(); ++tap) {
    for (std::int64_t channel = 0; channel < channels; channel += each) {
      all.push_back({tap, tap + 1, channel, std::min(channel + each, channels)});
    }
  }
  return all;
}

at::Tensor range_view(const Layer& layer, const at::Tensor& columns, const PatchRange& range) {
  return columns.view({layer.outputs, layer.unfoldings.front().taps(), -1})
      .narrow(1, range.tap_begin, range.tap_end - range.tap_begin)
      .narrow(2, range.channel_begin, range.channel_end - range.channel_begin);
}

at::Tensor in_range(const Layer& layer, const at::Tensor& columns, const PatchRange& range) {
  return range_view(layer, columns, range).reshape({-1});
}

template <typename Scalar>
void visit_rows(const Layer& layer, const StoredSignals& signals, const PatchRange& range,
                const std::function<void(std::int64_t example, Scalar* rows)>& visit) {
  const auto each = static_cast<std::size_t>(seeds_of(signals) * layer.outputs * range.width());
  std::vector<std::unique_ptr<Scalar[]>> buffers(static_cast<std::size_t>(at::get_num_threads()));
  with_patches<Scalar>(layer, signals, range, [&](std::int64_t i, Scalar* patches) {
    auto& own = buffers[static_cast<std::size_t>(at::get_thread_num())];
    if (!own) own = std::make_unique_for_overwrite<Scalar[]>(each);
    form_example_rows(layer, signals, i, range, patches, own.get());
    visit(i, own.get());
  });
}
template void visit_rows<float>(const Layer&, const StoredSignals&, const PatchRange&,
                                const std::function<void(std::int64_t, float*)>&);
template void visit_rows<double>(const Layer&, const StoredSignals&, const PatchRange&,
                                 const std::function<void(std::int64_t, double*)>&);

void form_rows(const Layer& layer, const StoredSignals& signals, const PatchRange& range,
               at::Tensor& rows) {
  assert(rows.is_contiguous() && rows.size(1) == layer.outputs * range.width());
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "form_rows", [&] {
    form_rows_as<scalar_t>(layer, signals, range, rows.data_ptr<scalar_t>());
  });
}

void contract(const Layer& layer, Contraction contraction, const StoredSignals& left,
              const StoredSignals& right, const ContractionOptions& options, at::Tensor& sum) {
  assert(sum.is_contiguous() && sum.scalar_type() == left.gradients.scalar_type());
  if (contraction == Contraction::explicit_rows) {
    return contract_explicitly(layer, left, right, options, sum);
  }
  assert(!options.scale);
  AT_DISPATCH_FLOATING_TYPES(sum.scalar_type(), "contract", [&] {
    if (contraction == Contraction::class_sharing) {
      share_classes<scalar_t>(layer, left, right, options, sum);
    } else {
      multiply_hadamard<scalar_t>(layer, left, right, options, sum);
    }
  });
}

std::int64_t minimal_workspace(const Layer& layer, Contraction contraction, std::int64_t seeds,
                               std::int64_t left_examples, std::int64_t right_examples,
                               std::int64_t scalar_size) {
  switch (contraction) {
    case Contraction::explicit_rows:
      return (left_examples + right_examples) * seeds * layer.outputs * scalar_size;
    case Contraction::class_sharing:
      return sharing_values(layer, 1) * scalar_size;
    case Contraction::hadamard:
      return hadamard_values(layer, seeds, 1) * scalar_size;
    case Contraction::linear_tail:
      return hadamard_values(pooled_layer(layer), seeds, 1) * scalar_size;
  }
  return 0;
}

void contract_rows(const at::Tensor& left, const at::Tensor& right, at::Tensor& sum) {
  assert(left.is_contiguous() && right.is_contiguous() && sum.is_contiguous());
  AT_DISPATCH_FLOATING_TYPES(sum.scalar_type(), "contract_rows", [&] {
    const std::int64_t columns = left.size(1);
    if (left.is_same(right)) {
      spread_syrk<scalar_t>(left.size(0), columns, left.data_ptr<scalar_t>(), columns, scalar_t{1},
                            sum.data_ptr<scalar_t>(), sum.size(1));
    } else {
      spread_gemm<scalar_t>(left.size(0), right.size(0), columns, left.data_ptr<scalar_t>(),
                            columns, right.data_ptr<scalar_t>(), columns, scalar_t{1},
                            sum.data_ptr<scalar_t>(), sum.size(1));
    }
  });
}

double sharing_product_flops(const Layer& layer) {
  const Unfolding& unfolding = layer.unfoldings.front();
  const bool by_pixel = shares_pixels(layer);
  const auto rows = static_cast<double>(by_pixel ? unfolding.pixels() : layer.positions);
  return 2 * rows * rows *
         static_cast<double>(by_pixel ? unfolding.group_channels() : layer.columns);
}

double tap_sums(const Layer& layer) {
  if (!shares_pixels(layer)) return 0;
  return static_cast<double>(layer.positions * layer.positions * layer.unfoldings.front().taps());
}

double contraction_flops(const Layer& layer, Contraction contraction, double pairs,
                         std::int64_t seeds) {
  const auto t = static_cast<double>(layer.positions);
  const auto k = static_cast<double>(layer.columns);
  const auto s = static_cast<double>(seeds);
  const auto o = static_cast<double>(layer.outputs / layer.groups);
  const auto groups = static_cast<double>(layer.groups);
  switch (contraction) {
    case Contraction::explicit_rows:
      return 2 * pairs * groups * s * s * o * k;
    case Contraction::hadamard:
      return 2 * pairs * groups * (t * t * k + s * s * t * t * (o + 1));
    case Contraction::class_sharing:
      return 2 * pairs * groups *
             ((sharing_product_flops(layer) + tap_sums(layer)) / 2 + s * t * t * o + s * s * t * o);
    case Contraction::linear_tail:
      return 2 * pairs * groups * (k + s * s * (o + 1));
  }
  return 0;
}

double row_flops(const Layer& layer, double examples, std::int64_t seeds) {
  return 2 * examples * static_cast<double>(seeds * layer.positions * layer.weights());
}

}  // namespace pumice
