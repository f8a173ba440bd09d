#include "pumice/linearization/layer_table.h"

#include <algorithm>
#include <map>

#include "pumice/core/error.h"

namespace pumice {
namespace {

// Of the norm of a gradient. In float32 sums over many positions cancel to a few digits, with no
// fault of the rule.
constexpr double tolerance_in_double = 1e-6;
constexpr double tolerance_in_single = 5e-2;

bool can_share(const Layer& layer, const MatrixUse& use) {
  return layer.columns == use.unfolding.columns() && layer.outputs == use.outputs &&
         layer.groups == use.unfolding.groups && layer.inputs_first == use.inputs_first &&
         layer.unfoldings.front().taps() == use.unfolding.taps();
}

void add_entry(ColumnBlock& block, std::size_t entry, std::int64_t count) {
  block.entries.push_back(entry);
  block.offsets.push_back(block.columns);
  block.columns += count;
}

// Are the output gradients of one example the same at all positions?
bool same_everywhere(const at::Tensor& gradient) {  // n × T × O
  const at::Tensor spread = (gradient - gradient.narrow(1, 0, 1)).abs().max();
  return spread.item<double>() <= 1e-6 * gradient.abs().max().item<double>();
}

class TableMaker {
 public:
  TableMaker(const Model& model, const Weights& weights, const at::Tensor& inputs)
      : model_(model), weights_(weights), inputs_(inputs), signals_(model, weights, inputs) {}

  LayerTable make() {
    for (const WithoutRule& missing : signals_.without_rule()) {
      slow_.emplace(missing.entry, missing.reason);
    }
    collect_layers();
    check_against_autograd();
    return finish();
  }

 private:
  const WeightLayout::Entry& entry(std::size_t position) const {
    return weights_.layout->entries()[position];
  }

  void collect_layers() {
    const auto& uses = signals_.matrix_uses();
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const MatrixUse& use = uses[i];
      auto [place, is_new] = layer_of_.emplace(use.entry, layers_.size());
      if (is_new) {
        Layer fresh;
        fresh.name = entry(use.entry).name;
        fresh.operation = use.operation;
        fresh.entry = use.entry;
        fresh.columns = use.unfolding.columns();
        fresh.outputs = use.outputs;
        fresh.groups = use.unfolding.groups;
        fresh.inputs_first = use.inputs_first;
        fresh.pooled_linearly = use.linear_to_logits;
        layers_.push_back(std::move(fresh));
      }
      Layer& layer = layers_[place->second];
      if (!is_new) {
        if (!can_share(layer, use)) {
          slow_.emplace(use.entry, "used in two shapes");
          continue;
        }
        layer.pooled_linearly = false;
      }
      layer.uses.push_back(i);
      layer.unfoldings.push_back(use.unfolding);
      layer.positions += use.positions();
    }
    for (const VectorUse& use : signals_.vector_uses()) {
      if (layer_of_.contains(use.entry)) slow_.emplace(use.entry, "used in two shapes");
    }
  }

  // Random seeds, one example at a time: what the rules say against what autograd says.
  void check_against_autograd() {
    const std::int64_t classes = signals_.logits().size(1);
    const std::int64_t examples = inputs_.size(0);
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(7);
    const at::Tensor seeds = at::randn({examples, classes}, generator, inputs_.options())
                                 .to(weights_.flat.scalar_type());
    std::vector<std::size_t> all(signals_.captures());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const std::vector<at::Tensor> gradients = signals_.output_gradients(seeds, all);
    for (Layer& layer : layers_) {
      for (const std::size_t use : layer.uses) {
        const MatrixUse& of_use = signals_.matrix_uses()[use];
        layer.pooled_linearly = layer.pooled_linearly && same_everywhere(LayerSignals::by_position(
                                                             of_use, gradients[of_use.capture]));
      }
    }
    for (const std::int64_t example : {std::int64_t{0}, examples - 1}) {
      check_example(example, seeds, gradients);
    }
  }

  void check_example(std::int64_t example, const at::Tensor& seeds,
                     const std::vector<at::Tensor>& gradients) {
    std::map<std::size_t, at::Tensor> ruled;  // by entry
    for (const Layer& layer : layers_) {
      std::vector<at::Tensor> inputs, stacked;
      for (const std::size_t use : layer.uses) {
        const MatrixUse& of_use = signals_.matrix_uses()[use];
        inputs.push_back(of_use.input[example]);
        stacked.push_back(LayerSignals::by_position(of_use, gradients[of_use.capture])[example]);
      }
      ruled[layer.entry] = entry_gradient(layer, inputs, at::cat(stacked));
    }
    for (const VectorUse& use : signals_.vector_uses()) {
      const at::Tensor part = use.gradient(gradients[use.capture])[example];
      if (part.numel() != entry(use.entry).count) {
        slow_.emplace(use.entry, "used in part");
        continue;
      }
      auto [place, is_new] = ruled.emplace(use.entry, part);
      if (!is_new && place->second.numel() == part.numel()) place->second = place->second + part;
    }
    const LayerSignals alone(model_, weights_, inputs_.narrow(0, example, 1));
    std::vector<std::size_t> entries;
    for (const auto& [position, gradient] : ruled) entries.push_back(position);
    const std::vector<at::Tensor> exact =
        alone.entry_gradients(seeds.narrow(0, example, 1), entries);
    const double tolerance =
        weights_.flat.scalar_type() == at::kDouble ? tolerance_in_double : tolerance_in_single;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double difference = (ruled[entries[i]] - exact[i]).norm().item<double>();
      if (!(difference <= tolerance * exact[i].norm().item<double>() + 1e-12)) {
        slow_.emplace(entries[i], "its rule disagrees with autograd");
      }
    }
  }

  LayerTable finish() {
    LayerTable table;
    table.matrix_use_count = signals_.matrix_uses().size();
    table.capture_count = signals_.captures();
    table.classes = signals_.logits().size(1);
    for (Layer& layer : layers_) {
      if (!slow_.contains(layer.entry)) table.layers.push_back(std::move(layer));
    }
    for (std::size_t i = 0; i < signals_.vector_uses().size(); ++i) {
      const std::size_t position = signals_.vector_uses()[i].entry;
      if (slow_.contains(position)) continue;
      table.vector_uses.push_back(i);
      const auto& known = table.vectors.entries;
      if (std::find(known.begin(), known.end(), position) == known.end()) {
        add_entry(table.vectors, position, entry(position).count);
      }
    }
    for (const auto& [position, reason] : slow_) {
      add_entry(table.slow, position, entry(position).count);
      table.slow_reasons.push_back(reason);
    }
    return table;
  }

  const Model& model_;
  const Weights weights_;
  const at::Tensor inputs_;
  LayerSignals signals_;
  std::vector<Layer> layers_;
  std::map<std::size_t, std::size_t> layer_of_;  // entry → layer
  std::map<std::size_t, std::string> slow_;      // entry → reason
};

}  // namespace

std::int64_t Layer::input_size() const {
  std::int64_t size = 0;
  for (const Unfolding& unfolding : unfoldings) size += unfolding.input_size();
  return size;
}

LayerTable read_layers(const Model& model, const Weights& weights, const at::Tensor& inputs) {
  if (weights.flat.scalar_type() != at::kDouble) {
    try {
      const Weights wide{weights.layout, weights.flat.to(at::kDouble)};
      return TableMaker(model, wide, inputs.is_floating_point() ? inputs.to(at::kDouble) : inputs)
          .make();
    } catch (const std::exception&) {
      // A model that runs in float32 only; if there is another reason, the next line meets it
      // again.
    }
  }
  return TableMaker(model, weights, inputs).make();
}

std::vector<std::string> without_rule(const LayerTable& table, const WeightLayout& layout) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < table.slow.entries.size(); ++i) {
    all.push_back(layout.entries()[table.slow.entries[i]].name + ": " + table.slow_reasons[i]);
  }
  return all;
}

at::Tensor to_entry_order(const Layer& layer, const at::Tensor& columns) {
  if (layer.inputs_first) return columns.reshape({layer.outputs, -1}).t().reshape({-1});
  const std::int64_t taps = layer.unfoldings.front().taps();
  return columns.reshape({layer.outputs, taps, -1}).transpose(1, 2).reshape({-1});
}

at::Tensor from_entry_order(const Layer& layer, const at::Tensor& entry) {
  if (layer.inputs_first) return entry.reshape({-1, layer.outputs}).t().reshape({-1});
  const std::int64_t taps = layer.unfoldings.front().taps();
  return entry.reshape({layer.outputs, -1, taps}).transpose(1, 2).reshape({-1});
}

at::Tensor entry_gradient(const Layer& layer, const std::vector<at::Tensor>& inputs,
                          const at::Tensor& gradient) {
  const std::int64_t group_outputs = layer.outputs / layer.groups;
  std::vector<at::Tensor> parts;  // by group: (O/G)×K
  for (std::int64_t group = 0; group < layer.groups; ++group) {
    std::vector<at::Tensor> patches;
    for (std::size_t use = 0; use < layer.uses.size(); ++use) {
      const Unfolding& unfolding = layer.unfoldings[use];
      patches.push_back(
          at::empty({unfolding.positions(), unfolding.columns()}, gradient.options()));
      AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "unfold", [&] {
        unfold(unfolding, inputs[use].data_ptr<scalar_t>(), group, whole_patch(unfolding),
               patches.back().data_ptr<scalar_t>());
      });
    }
    const at::Tensor of_group = gradient.narrow(1, group * group_outputs, group_outputs);
    parts.push_back(of_group.t().mm(at::cat(patches)));
  }
  return to_entry_order(layer, at::cat(parts));
}

void check_same_graph(const LayerTable& table, const LayerSignals& signals) {
  if (signals.captures() != table.capture_count ||
      signals.matrix_uses().size() != table.matrix_use_count) {
    fail("model: it takes different ways for different examples (", table.matrix_use_count,
         " weight matrices used before, ", signals.matrix_uses().size(),
         " now); networks whose control flow depends on the data cannot be linearised as one");
  }
}

}  // namespace pumice
