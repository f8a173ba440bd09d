#include "pumice/linearization/row_stream.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/linalg/blas.h"
#include "pumice/linearization/class_products.h"

namespace pumice {
namespace {

constexpr std::int64_t most_memory = std::int64_t{256} << 20;
constexpr std::int64_t largest_chunk = 16;
constexpr std::int64_t panel_columns = 22000;  // with five rows each, less than half a mebibyte

std::vector<KernelPart> all_parts(const LayerTable& table) {
  std::vector<KernelPart> parts;
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    KernelPart part;
    part.layer = i;
    part.storage = Storage::signals;
    parts.push_back(part);
  }
  KernelPart block;
  block.kind = KernelPart::Kind::vectors;
  if (table.vectors.columns > 0) parts.push_back(block);
  block.kind = KernelPart::Kind::slow;
  if (table.slow.columns > 0) parts.push_back(block);
  return parts;
}

// Bytes of one example: on its way through the network, and its signals, and one panel of rows.
std::int64_t bytes_each(const Examples& examples) {
  const auto size = static_cast<std::int64_t>(examples.weights.flat.element_size());
  const std::int64_t seeds = examples.rows_each();
  std::int64_t values = 0, widest = 0;
  for (const Layer& layer : examples.table.layers) {
    values += layer.input_size() + seeds * layer.gradient_size();
    widest = std::max(widest, std::min(layer.weights(), std::max(panel_columns, layer.outputs)));
  }
  values += 2 * seeds * widest;
  return passing_bytes(examples.table, seeds, size) + values * size;
}

// Each thread takes its own examples through all layers: nobody waits at the end of every small
// operation. Only if it has two at a time, since LibTorch's convolutions of one image are slow.
std::int64_t workers_for(std::int64_t examples) {
  return std::clamp<std::int64_t>(examples / 2, 1, at::get_num_threads());
}

// Examples [begin, end) in chunks.
void stream_range(const Examples& examples, std::int64_t begin, std::int64_t end,
                  std::int64_t chunk, const std::function<void(RowPanel&)>& visit,
                  const std::function<void(std::int64_t, const at::Tensor&)>& after_chunk) {
  const std::vector<KernelPart> parts = all_parts(examples.table);
  for (std::int64_t first = begin; first < end; first += chunk) {
    const std::int64_t count = std::min(chunk, end - first);
    at::Tensor logits;
    std::vector<StoredPart> stored = gather(examples, first, first + count, parts, count, {},
                                            [&](const at::Tensor& of_chunk) { logits = of_chunk; });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      RowPanel panel;
      panel.first_example = first;
      panel.examples = count;
      if (parts[i].kind != KernelPart::Kind::layer) {
        panel.block = parts[i].kind == KernelPart::Kind::vectors ? &examples.table.vectors
                                                                 : &examples.table.slow;
        panel.rows = stored[i].rows;
        visit(panel);
        continue;
      }
      panel.layer = &examples.table.layers[parts[i].layer];
      for (const PatchRange& range : column_panels(*panel.layer, panel_columns)) {
        panel.range = range;
        panel.signals = &stored[i].signals;
        visit(panel);
      }
      stored[i] = {};
    }
    after_chunk(first, logits);
  }
}

template <typename Scalar>
void multiply(std::int64_t count, const Scalar* factors, Scalar* values) {
#pragma omp simd
  for (std::int64_t k = 0; k < count; ++k) values[k] *= factors[k];
}

template <typename Scalar>
void add_squares(std::int64_t count, const Scalar* values, Scalar* sums) {
#pragma omp simd
  for (std::int64_t k = 0; k < count; ++k) sums[k] += values[k] * values[k];
}

}  // namespace

std::int64_t RowPanel::columns() const {
  return layer ? layer->outputs * range.width() : rows.size(1);
}

template <typename Scalar>
void RowPanel::for_each(
    const std::function<void(std::int64_t example, Scalar* rows)>& visit) const {
  if (layer) return visit_rows<Scalar>(*layer, *signals, range, visit);
  Scalar* first = rows.data_ptr<Scalar>();
  const std::int64_t each = rows.numel() / examples;
  at::parallel_for(0, examples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) visit(i, first + i * each);
  });
}

void stream_rows(
    const Examples& examples, const RowStreamOptions& options,
    const std::function<void(const RowPanel&)>& visit,
    const std::function<void(std::int64_t first, const at::Tensor& logits)>& visit_logits) {
  const std::int64_t memory =
      std::min(most_memory, options.memory ? *options.memory : available_memory() / 2);
  const std::int64_t each = bytes_each(examples);
  if (options.memory && each > *options.memory) {
    fail("memory: ", bytes_text(static_cast<double>(*options.memory)),
         " is too little, one example needs ", bytes_text(static_cast<double>(each)));
  }
  const std::int64_t affordable = std::clamp<std::int64_t>(memory / each, 1, largest_chunk);
  const std::int64_t workers = std::min(workers_for(examples.count()), affordable);
  std::mutex reporting;
  std::int64_t done = 0;
  const auto after_chunk = [&](std::int64_t first, const at::Tensor& logits) {
    const std::lock_guard lock(reporting);
    if (visit_logits) visit_logits(first, logits);
    done += logits.size(0);
    if (options.progress) {
      options.progress(static_cast<double>(done) / static_cast<double>(examples.count()));
    }
  };
  const auto work = [&](std::int64_t worker) {
    const std::int64_t begin = examples.count() * worker / workers;
    const std::int64_t end = examples.count() * (worker + 1) / workers;
    stream_range(
        examples, begin, end, affordable / workers,
        [&](RowPanel& panel) {
          panel.worker = worker;
          visit(panel);
        },
        after_chunk);
  };
  if (workers == 1) return work(0);
  SerialBlas serial;
  at::parallel_for(0, workers, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) work(worker);
  });
}

PanelFactors::PanelFactors(const LayerTable& table, const WeightLayout& layout,
                           const at::Tensor& flat)
    : table_(table) {
  for (const Layer& layer : table.layers) {
    layers_.push_back(layer_factors(layer, layout, flat));
  }
  if (table.vectors.columns > 0) vectors_ = block_factors(table.vectors, layout, flat);
  if (table.slow.columns > 0) slow_ = block_factors(table.slow, layout, flat);
}

at::Tensor PanelFactors::of(const RowPanel& panel) const {
  if (panel.block) return panel.block == &table_.vectors ? vectors_ : slow_;
  const auto position = static_cast<std::size_t>(panel.layer - table_.layers.data());
  return in_range(*panel.layer, layers_[position], panel.range);
}

void check_variance(const at::Tensor& variance, std::int64_t weights) {
  if (variance.dim() != 1 || variance.numel() != weights) {
    fail("variance: shape ", variance.sizes(), ", must be ", weights, " values");
  }
  if (!variance.isfinite().all().item<bool>() || variance.min().item<double>() < 0) {
    fail("variance: smallest value ", variance.min().item<double>(),
         ", all must be finite and >= 0");
  }
}

NoisyAnswers noisy_answers(const Examples& examples, const at::Tensor& variance,
                           const RowStreamOptions& options) {
  const std::int64_t seeds = examples.rows_each();
  const WeightLayout& layout = *examples.weights.layout;
  const PanelFactors deviations(examples.table, layout,
                                variance.sqrt().to(examples.weights.flat.scalar_type()));
  at::Tensor logits = at::empty({examples.count(), examples.table.classes}, at::kDouble);
  at::Tensor blocks = at::zeros({examples.count(), seeds, seeds}, at::kDouble);
  const auto add_products = [&](const RowPanel& panel) {
    const std::int64_t width = panel.columns();
    const at::Tensor deviation = deviations.of(panel);
    at::Tensor part = at::zeros({panel.examples, seeds, seeds}, deviation.options());
    AT_DISPATCH_FLOATING_TYPES(deviation.scalar_type(), "query_blocks", [&] {
      const scalar_t* factors = deviation.data_ptr<scalar_t>();
      scalar_t* sums = part.data_ptr<scalar_t>();
      panel.for_each<scalar_t>([&](std::int64_t i, scalar_t* rows) {
        for (std::int64_t seed = 0; seed < seeds; ++seed) {
          multiply(width, factors, rows + seed * width);
        }
        add_class_products(seeds, seeds, 1, width, rows, 0, width, rows, 0, width,
                           sums + i * seeds * seeds, seeds);
      });
    });
    blocks.narrow(0, panel.first_example, panel.examples).add_(part);
  };
  stream_rows(examples, options, add_products, [&](std::int64_t first, const at::Tensor& answers) {
    logits.narrow(0, first, answers.size(0)).copy_(answers);
  });
  return {logits, blocks};
}

// Σ over the panel's rows of their squares, w values.
static at::Tensor squared_sum(const RowPanel& panel, std::int64_t seeds, at::ScalarType type) {
  const std::int64_t width = panel.columns();
  at::Tensor by_thread = at::zeros({at::get_num_threads(), width}, type);
  AT_DISPATCH_FLOATING_TYPES(type, "squared_sum", [&] {
    scalar_t* sums = by_thread.data_ptr<scalar_t>();
    panel.for_each<scalar_t>([&](std::int64_t, const scalar_t* rows) {
      scalar_t* own = sums + at::get_thread_num() * width;
      for (std::int64_t seed = 0; seed < seeds; ++seed) {
        add_squares(width, rows + seed * width, own);
      }
    });
  });
  return by_thread.sum(0);
}

at::Tensor sum_of_squares(const Examples& examples, const RowStreamOptions& options) {
  const WeightLayout& layout = *examples.weights.layout;
  const std::int64_t seeds = examples.rows_each();
  // Each worker its own sums, added in their order: the same bytes every time. Layers are summed in
  // their own order of columns, and put in the layout's at the end.
  const auto workers = static_cast<std::size_t>(workers_for(examples.count()));
  std::vector<at::Tensor> sums(workers);
  std::vector<std::vector<at::Tensor>> by_layer(workers);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    sums[worker] = at::zeros({layout.total()}, at::kDouble);
    for (const Layer& layer : examples.table.layers) {
      by_layer[worker].push_back(at::zeros({layer.weights()}, at::kDouble));
    }
  }
  stream_rows(examples, options, [&](const RowPanel& panel) {
    const auto worker = static_cast<std::size_t>(panel.worker);
    const at::Tensor squares = squared_sum(panel, seeds, examples.weights.flat.scalar_type());
    if (panel.layer) {
      const auto position = static_cast<std::size_t>(panel.layer - examples.table.layers.data());
      at::Tensor target = range_view(*panel.layer, by_layer[worker][position], panel.range);
      target.add_(squares.view(target.sizes()));
      return;
    }
    for (std::size_t i = 0; i < panel.block->entries.size(); ++i) {
      const auto& entry = layout.entries()[panel.block->entries[i]];
      sums[worker]
          .narrow(0, entry.offset, entry.count)
          .add_(squares.narrow(0, panel.block->offsets[i], entry.count));
    }
  });
  at::Tensor total = at::zeros({layout.total()}, at::kDouble);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    total.add_(sums[worker]);
    for (std::size_t i = 0; i < examples.table.layers.size(); ++i) {
      const Layer& layer = examples.table.layers[i];
      const auto& entry = layout.entries()[layer.entry];
      total.narrow(0, entry.offset, entry.count).add_(to_entry_order(layer, by_layer[worker][i]));
    }
  }
  return total;
}

}  // namespace pumice
