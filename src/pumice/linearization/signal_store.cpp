#include "pumice/linearization/signal_store.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <set>

#include "pumice/core/error.h"
#include "pumice/linearization/channel_layout.h"

namespace pumice {
namespace {

// Reads all of `gradient` once; looks closer only if the sum is not finite.
void check_finite(const at::Tensor& gradient, const std::string& layer, std::int64_t first) {
  if (std::isfinite(gradient.sum().item<double>())) return;
  const std::int64_t rows = gradient.size(0);
  const at::Tensor bad = gradient.isfinite().logical_not().reshape({rows, -1}).any(1);
  if (!bad.any().item<bool>()) return;  // the sum overflowed, the values are fine
  const std::int64_t row = bad.nonzero()[0][0].item<std::int64_t>();
  fail("gradient of layer '", layer, "' for example ", first + row, " is not finite");
}

// gradient (n×T×O), row (i, t) to i·example_stride + t·position_stride. The same as
// narrow().select().copy_(), which works row by row of O values at four times the cost.
template <typename Scalar>
void copy_rows(const at::Tensor& gradient, std::int64_t example_stride,
               std::int64_t position_stride, Scalar* to) {
  const std::int64_t positions = gradient.size(1), outputs = gradient.size(2);
  const Scalar* from = gradient.data_ptr<Scalar>();
  at::parallel_for(0, gradient.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t t = 0; t < positions; ++t) {
        std::memcpy(to + i * example_stride + t * position_stride,
                    from + (i * positions + t) * outputs,
                    sizeof(Scalar) * static_cast<std::size_t>(outputs));
      }
    }
  });
}

// One chunk: forward pass, one backward pass for each seed, everything written to its place.
class Chunk {
 public:
  Chunk(const Examples& examples, std::int64_t first, std::int64_t count, std::int64_t offset,
        const at::Tensor& factors)
      : examples_(examples),
        first_(first),
        count_(count),
        offset_(offset),
        factors_(factors),
        inputs_(examples.inputs.narrow(0, first, count)),
        signals_(examples.model, examples.weights, inputs_) {
    check_same_graph(examples.table, signals_);
    check_finite(signals_.logits().detach(), "logits", first);
  }

  at::Tensor logits() const { return signals_.logits().detach(); }

  void store(const std::vector<KernelPart>& parts, std::vector<StoredPart>& stored) {
    for (std::size_t i = 0; i < parts.size(); ++i) add_captures(parts[i]);
    const std::vector<std::size_t> wanted(wanted_.begin(), wanted_.end());
    prepare(parts, stored);
    for (std::int64_t seed = 0; seed < examples_.rows_each(); ++seed) {
      std::vector<at::Tensor> gradients(signals_.captures());
      std::vector<at::Tensor> found = signals_.output_gradients(seeds(seed), wanted);
      for (std::size_t i = 0; i < wanted.size(); ++i) gradients[wanted[i]] = std::move(found[i]);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        take(parts[i], seed, gradients, stored[i], temporary_[i]);
      }
    }
    for (std::size_t i = 0; i < parts.size(); ++i) finish(parts[i], stored[i], temporary_[i]);
  }

 private:
  const Layer& layer_of(const KernelPart& part) const { return examples_.table.layers[part.layer]; }

  at::Tensor seeds(std::int64_t seed) const {
    if (examples_.seeds) return examples_.seeds->narrow(0, first_, count_).select(1, seed);
    at::Tensor one_hot = at::zeros({count_, examples_.table.classes}, signals_.logits().options());
    one_hot.select(1, seed).fill_(1);
    return one_hot;
  }

  void add_captures(const KernelPart& part) {
    if (part.kind == KernelPart::Kind::layer) {
      for (const std::size_t use : layer_of(part).uses) {
        wanted_.insert(signals_.matrix_uses()[use].capture);
      }
    } else if (part.kind == KernelPart::Kind::vectors) {
      for (const std::size_t use : examples_.table.vector_uses) {
        wanted_.insert(signals_.vector_uses()[use].capture);
      }
    }
  }

  // Layers that keep rows need the signals of the whole chunk first.
  void prepare(const std::vector<KernelPart>& parts, std::vector<StoredPart>& stored) {
    temporary_.resize(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != KernelPart::Kind::layer) continue;
      const Layer& layer = layer_of(parts[i]);
      std::vector<at::Tensor> inputs;
      for (const std::size_t use : layer.uses) inputs.push_back(signals_.matrix_uses()[use].input);
      if (parts[i].storage == Storage::rows) {
        temporary_[i].inputs = std::move(inputs);
        temporary_[i].gradients =
            at::empty({count_, layer.positions, examples_.rows_each(), layer.outputs},
                      signals_.logits().options().requires_grad(false));
      } else if (parts[i].storage == Storage::pooled) {
        stored[i].signals.inputs[0].narrow(0, offset_, count_).copy_(pooled_patches(layer, inputs));
      } else {
        for (std::size_t use = 0; use < inputs.size(); ++use) {
          stored[i].signals.inputs[use].narrow(0, offset_, count_).copy_(inputs[use]);
        }
      }
    }
  }

  void take(const KernelPart& part, std::int64_t seed, const std::vector<at::Tensor>& gradients,
            StoredPart& stored, StoredSignals& temporary) {
    if (part.kind == KernelPart::Kind::slow) return;
    if (part.kind == KernelPart::Kind::vectors) return take_vectors(seed, gradients, stored.rows);
    const Layer& layer = layer_of(part);
    at::Tensor target = part.storage == Storage::rows
                            ? temporary.gradients
                            : stored.signals.gradients.narrow(0, offset_, count_);
    std::int64_t position = 0;
    for (const std::size_t use : layer.uses) {
      const MatrixUse& of_use = signals_.matrix_uses()[use];
      const at::Tensor& gradient = gradients[of_use.capture];
      check_finite(gradient, layer.name, first_);
      if (part.storage == Storage::pooled) {  // the same at all positions
        target.select(2, seed).copy_(LayerSignals::by_position(of_use, gradient).narrow(1, 0, 1));
        return;
      }
      AT_DISPATCH_FLOATING_TYPES(target.scalar_type(), "copy_seed", [&] {
        scalar_t* to =
            target.data_ptr<scalar_t>() + position * target.stride(1) + seed * target.stride(2);
        if (of_use.operation == "convolution" && gradient.is_contiguous()) {
          copy_channels_last(gradient, target.stride(0), target.stride(1), to);
        } else {
          copy_rows(LayerSignals::by_position(of_use, gradient).contiguous(), target.stride(0),
                    target.stride(1), to);
        }
      });
      position += of_use.positions();
    }
  }

  void take_vectors(std::int64_t seed, const std::vector<at::Tensor>& gradients, at::Tensor& rows) {
    const ColumnBlock& block = examples_.table.vectors;
    at::Tensor own = rows.view({-1, examples_.rows_each(), block.columns})
                         .narrow(0, offset_, count_)
                         .select(1, seed);
    own.zero_();
    for (const std::size_t use : examples_.table.vector_uses) {
      const VectorUse& of_use = signals_.vector_uses()[use];
      const at::Tensor gradient = of_use.gradient(gradients[of_use.capture]);
      const auto& name = examples_.weights.layout->entries()[of_use.entry].name;
      check_finite(gradient, name, first_);
      const auto place = std::find(block.entries.begin(), block.entries.end(), of_use.entry);
      const std::int64_t column =
          block.offsets[static_cast<std::size_t>(place - block.entries.begin())];
      own.narrow(1, column, gradient.size(1)).add_(gradient);
    }
    if (factors_.defined()) own.mul_(block_factors(block, *examples_.weights.layout, factors_));
  }

  void finish(const KernelPart& part, StoredPart& stored, StoredSignals& temporary) {
    if (part.kind == KernelPart::Kind::slow) return take_slow(stored.rows);
    if (part.kind != KernelPart::Kind::layer || part.storage != Storage::rows) return;
    const Layer& layer = layer_of(part);
    const std::int64_t each = examples_.rows_each();
    at::Tensor own = stored.rows.narrow(0, offset_ * each, count_ * each);
    form_rows(layer, temporary, whole_patch(layer.unfoldings.front()), own);
    if (factors_.defined()) {
      own.mul_(layer_factors(layer, *examples_.weights.layout, factors_));
    }
    temporary = {};
  }

  // One example at a time, full gradients of the parameters that no rule covers.
  void take_slow(at::Tensor& rows) {
    const ColumnBlock& block = examples_.table.slow;
    for (std::int64_t i = 0; i < count_; ++i) {
      const LayerSignals alone(examples_.model, examples_.weights, inputs_.narrow(0, i, 1));
      for (std::int64_t seed = 0; seed < examples_.rows_each(); ++seed) {
        const std::vector<at::Tensor> gradients =
            alone.entry_gradients(seeds(seed).narrow(0, i, 1), block.entries);
        at::Tensor row = rows[(offset_ + i) * examples_.rows_each() + seed];
        for (std::size_t entry = 0; entry < gradients.size(); ++entry) {
          const auto& name = examples_.weights.layout->entries()[block.entries[entry]].name;
          check_finite(gradients[entry].unsqueeze(0), name, first_ + i);
          row.narrow(0, block.offsets[entry], gradients[entry].numel()).copy_(gradients[entry]);
        }
        if (factors_.defined()) row.mul_(block_factors(block, *examples_.weights.layout, factors_));
      }
    }
  }

  const Examples& examples_;
  std::int64_t first_, count_, offset_;
  at::Tensor factors_;
  at::Tensor inputs_;
  LayerSignals signals_;
  std::set<std::size_t> wanted_;
  std::vector<StoredSignals> temporary_;
};

// Memory of its own, given back whole when it is no longer needed. From the heap, the parts of one
// pass would leave holes that those of the next do not fit into: several passes then took a fifth
// more than planned. Small pieces stay on the heap, where the next chunk finds them warm.
at::Tensor mapped(at::IntArrayRef sizes, const at::TensorOptions& options) {
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) *
                     c10::elementSize(c10::typeMetaToScalarType(options.dtype()));
  constexpr std::size_t small = std::size_t{32} << 20;
  if (bytes < small) return at::empty(sizes, options);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return at::from_blob(
      memory, sizes, [bytes](void* own) { ::munmap(own, bytes); }, options);
}

StoredPart empty_part(const KernelPart& part, const Examples& examples, std::int64_t count) {
  const at::TensorOptions options = examples.weights.flat.options().requires_grad(false);
  const std::int64_t each = examples.rows_each();
  StoredPart stored;
  if (part.kind != KernelPart::Kind::layer) {
    const ColumnBlock& block =
        part.kind == KernelPart::Kind::vectors ? examples.table.vectors : examples.table.slow;
    stored.rows = mapped({count * each, block.columns}, options);
    return stored;
  }
  const Layer& layer = examples.table.layers[part.layer];
  if (part.storage == Storage::rows) {
    stored.rows = mapped({count * each, layer.weights()}, options);
    return stored;
  }
  const Layer kept = part.storage == Storage::pooled ? pooled_layer(layer) : layer;
  for (const Unfolding& unfolding : kept.unfoldings) {
    stored.signals.inputs.push_back(mapped({count, unfolding.input_size()}, options));
  }
  stored.signals.gradients = mapped({count, kept.positions, each, kept.outputs}, options);
  return stored;
}

}  // namespace

std::vector<StoredPart> gather(const Examples& examples, std::int64_t begin, std::int64_t end,
                               const std::vector<KernelPart>& parts, std::int64_t chunk,
                               const at::Tensor& factors,
                               const std::function<void(const at::Tensor& logits)>& after_chunk) {
  std::vector<StoredPart> stored;
  for (const KernelPart& part : parts) stored.push_back(empty_part(part, examples, end - begin));
  for (std::int64_t first = begin; first < end; first += chunk) {
    const std::int64_t count = std::min(chunk, end - first);
    Chunk one(examples, first, count, first - begin, factors);
    one.store(parts, stored);
    if (after_chunk) after_chunk(one.logits());
  }
  return stored;
}

at::Tensor layer_factors(const Layer& layer, const WeightLayout& layout, const at::Tensor& flat) {
  const auto& entry = layout.entries()[layer.entry];
  return from_entry_order(layer, flat.narrow(0, entry.offset, entry.count));
}

at::Tensor block_factors(const ColumnBlock& block, const WeightLayout& layout,
                         const at::Tensor& flat) {
  std::vector<at::Tensor> parts;
  for (const std::size_t position : block.entries) {
    const auto& entry = layout.entries()[position];
    parts.push_back(flat.narrow(0, entry.offset, entry.count));
  }
  return at::cat(parts);
}

}  // namespace pumice
