#include "pumice/linearization/layer_signals.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "pumice/core/error.h"
#include "pumice/linearization/channel_layout.h"

namespace pumice {
namespace {

namespace generated = torch::autograd::generated;
using torch::autograd::Edge;
using torch::autograd::Node;

// The tensor that an edge stands for, as zeros: the one public way to its shape.
at::Tensor zeros_at(const Edge& edge) {
  return edge.function->input_metadata(edge.input_nr).zeros_like();
}

// Operations through which a parameter keeps its values and their order.
const std::unordered_set<std::string> views{
    "ViewBackward0",    "ReshapeAliasBackward0", "UnsafeViewBackward0", "AliasBackward0",
    "SqueezeBackward0", "SqueezeBackward1",      "UnsqueezeBackward0"};

bool is_transposition(const std::string& name) {
  return name == "TBackward0" || name == "TransposeBackward0";
}

// Further operations whose gradient does not depend on the data, apart from products with a
// parameter.
const std::unordered_set<std::string> fixed_linear{"PermuteBackward0",
                                                   "CloneBackward0",
                                                   "AddBackward0",
                                                   "SubBackward0",
                                                   "MeanBackward0",
                                                   "MeanBackward1",
                                                   "SumBackward0",
                                                   "SumBackward1",
                                                   "AvgPool2DBackward0",
                                                   "ExpandBackward0",
                                                   "AdaptiveAvgPool2DBackward0",
                                                   "NativeBatchNormBackward0"};

// A parameter as an operation sees it.
struct ParameterEdge {
  std::size_t entry;
  bool transposed;
  std::vector<std::int64_t> shape;
};

// The sum of an output gradient over everything but the example and the axes of the parameter, n ×
// count.
at::Tensor summed_to(const at::Tensor& gradient, const std::vector<std::int64_t>& shape) {
  const auto axes = static_cast<std::size_t>(gradient.dim());
  std::vector<std::int64_t> summed;
  for (std::size_t axis = 1; axis < axes; ++axis) {
    const bool kept = axis + shape.size() >= axes && shape[axis + shape.size() - axes] != 1;
    if (!kept) summed.push_back(static_cast<std::int64_t>(axis));
  }
  return (summed.empty() ? gradient : gradient.sum(summed)).reshape({gradient.size(0), -1});
}

// One number stands for all axes.
std::int64_t along(const std::vector<std::int64_t>& values, std::size_t axis) {
  return values.size() == 1 ? values[0] : values[axis];
}

// Stands in for batch norm in evaluation mode on the way back: the gradient times γ/√(variance +
// ε). LibTorch's own is several times slower than a convolution when the channels are no multiple
// of eight (25 channels: 0.26 ms an image of 32×32 on two cores, against 0.02).
class FrozenBatchNormBackward : public Node {
 public:
  FrozenBatchNormBackward(at::Tensor factor, const at::Tensor& input, const Edge& next)
      : factor_(std::move(factor)) {
    add_next_edge(next);
    add_input_metadata(at::empty({1}, input.options()).expand(input.sizes()));
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    return {gradients[0] * factor_};
  }
  std::string name() const override { return "FrozenBatchNormBackward"; }

 private:
  at::Tensor factor_;
};

}  // namespace

struct LayerSignals::Graph {
  Weights weights;  // its flat vector is the leaf
  at::Tensor logits;
  std::int64_t examples = 0;
  std::shared_ptr<Node> parameters;  // the one split of the flat vector
  std::vector<Edge> captures;
  std::unordered_map<Node*, std::size_t> capture_of;
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<std::pair<Node*, std::shared_ptr<Node>>> stand_ins;  // batch norm → its stand-in

  std::optional<ParameterEdge> parameter(const Edge& edge) const {
    if (!edge.is_valid()) return std::nullopt;
    bool transposed = false;
    Edge at = edge;
    while (at.is_valid()) {
      if (at.function == parameters) {
        return ParameterEdge{at.input_nr, transposed, zeros_at(edge).sizes().vec()};
      }
      const std::string name = at.function->name();
      const bool transposition = is_transposition(name);
      if (!transposition && !views.contains(name)) return std::nullopt;
      transposed ^= transposition;
      at = at.function->next_edge(0);
    }
    return std::nullopt;
  }

  std::size_t capture(const std::shared_ptr<Node>& node) {
    const auto [place, is_new] = capture_of.emplace(node.get(), captures.size());
    if (is_new) captures.emplace_back(node, 0);
    return place->second;
  }

  const WeightLayout::Entry& entry(std::size_t position) const {
    return weights.layout->entries()[position];
  }

  // Once, before the first pass that asks for output gradients only: stand-ins know nothing of
  // parameters.
  void use_stand_ins() {
    for (const auto& [original, stand_in] : stand_ins) {
      if (logits.grad_fn().get() == original) continue;  // the root stays
      for (const auto& node : nodes) {
        for (Edge& edge : node->next_edges()) {
          if (edge.function.get() == original) edge.function = stand_in;
        }
      }
      // A stand-in that comes before another one points to the original: mend those as well.
      for (const auto& [unused, other] : stand_ins) {
        for (Edge& edge : other->next_edges()) {
          if (edge.function.get() == original) edge.function = stand_in;
        }
      }
      for (Edge& capture : captures) {
        if (capture.function.get() == original) capture.function = stand_in;
      }
    }
    stand_ins.clear();
    nodes.clear();
  }
};

namespace {

// Turns the nodes of one graph into uses. Each rule marks the edges that it accounts for; an edge
// to a parameter that is left over has no rule.
class RuleBook {
 public:
  RuleBook(std::function<std::optional<ParameterEdge>(const Edge&)> parameter,
           std::function<std::size_t(const std::shared_ptr<Node>&)> capture, std::int64_t examples)
      : parameter_(std::move(parameter)), capture_(std::move(capture)), examples_(examples) {}

  std::vector<MatrixUse> matrix_uses;
  std::vector<VectorUse> vector_uses;
  std::vector<WithoutRule> without_rule;
  std::vector<std::pair<Node*, std::shared_ptr<Node>>> stand_ins;

  void read(const std::shared_ptr<Node>& node) {
    accounted_.assign(node->num_outputs(), false);
    if (auto* convolution = dynamic_cast<generated::ConvolutionBackward0*>(node.get())) {
      read_convolution(node, *convolution);
    } else if (auto* other = dynamic_cast<generated::ConvolutionBackward1*>(node.get())) {
      read_convolution(node, *other);
    } else if (auto* addmm = dynamic_cast<generated::AddmmBackward0*>(node.get())) {
      if (addmm->alpha.toDouble() == 1 && addmm->beta.toDouble() == 1) {
        if (parameter_(node->next_edge(2))) read_linear(node, 2, addmm->mat1_.unpack());
        read_shift(node, 0, "bias", 1);
      }
    } else if (auto* mm = dynamic_cast<generated::MmBackward0*>(node.get())) {
      if (parameter_(node->next_edge(1))) read_linear(node, 1, mm->self_.unpack());
    } else if (auto* batched = dynamic_cast<generated::BmmBackward0*>(node.get())) {
      read_batched_linear(node, batched->self_.unpack());
    } else if (auto* norm = dynamic_cast<generated::NativeBatchNormBackward0*>(node.get())) {
      read_batch_norm(node, *norm);
    } else if (auto* layer = dynamic_cast<generated::NativeLayerNormBackward0*>(node.get())) {
      read_layer_norm(node, *layer);
    } else if (auto* group = dynamic_cast<generated::NativeGroupNormBackward0*>(node.get())) {
      read_group_norm(node, *group);
    } else if (auto* embedding = dynamic_cast<generated::EmbeddingBackward0*>(node.get())) {
      read_embedding(node, *embedding);
    } else if (auto* sum = dynamic_cast<generated::AddBackward0*>(node.get())) {
      read_shift(node, 0, "sum", 1);
      read_shift(node, 1, "sum", sum->alpha.toDouble());
    } else if (auto* difference = dynamic_cast<generated::SubBackward0*>(node.get())) {
      read_shift(node, 0, "sum", 1);
      read_shift(node, 1, "sum", -difference->alpha.toDouble());
    } else if (node->name() == "ExpandBackward0" && !explained_.contains(node.get())) {
      read_shift(node, 0, "expand", 1);
    }
    if (explained_.contains(node.get())) return;
    for (std::size_t i = 0; i < accounted_.size(); ++i) {
      if (accounted_[i]) continue;
      if (const auto left_over = parameter_(node->next_edge(i))) {
        without_rule.push_back({left_over->entry, "no rule for " + node->name()});
      }
    }
  }

 private:
  template <typename Convolution>
  void read_convolution(const std::shared_ptr<Node>& node, Convolution& convolution) {
    if (convolution.transposed) return;
    const at::Tensor input = convolution.input_.unpack();
    read_shift(node, 2, "bias", 1, /*channel_axis=*/true);
    const auto weight = parameter_(node->next_edge(1));
    if (!weight || weight->transposed || input.size(0) != examples_) return;
    const std::size_t axes = weight->shape.size() - 2;
    if (axes < 1 || axes > 3 || input.dim() != static_cast<std::int64_t>(axes) + 2) return;
    MatrixUse use;
    use.entry = weight->entry;
    use.operation = "convolution";
    use.unfolding.channels = input.size(1);
    use.unfolding.groups = convolution.groups;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const std::size_t to = 3 - axes + axis;
      use.unfolding.extent[to] = input.size(static_cast<std::int64_t>(axis) + 2);
      use.unfolding.kernel[to] = weight->shape[axis + 2];
      use.unfolding.stride[to] = along(convolution.stride, axis);
      use.unfolding.padding[to] = along(convolution.padding, axis);
      use.unfolding.dilation[to] = along(convolution.dilation, axis);
    }
    use.outputs = weight->shape[0];
    use.input = channels_last_rows(input.detach());
    use.capture = capture_(node);
    matrix_uses.push_back(std::move(use));
    accounted_[1] = true;
  }

  void read_linear(const std::shared_ptr<Node>& node, std::size_t edge, const at::Tensor& input) {
    const auto weight = parameter_(node->next_edge(edge));
    if (weight->shape.size() != 2 || !input.defined() || input.size(0) % examples_ != 0) return;
    add_linear(node, "linear", *weight, input.detach(), !weight->transposed);
    accounted_[edge] = true;
  }

  // matmul() repeats the matrix for every example where it cannot fold examples and positions into
  // one axis.
  void read_batched_linear(const std::shared_ptr<Node>& node, const at::Tensor& input) {
    Edge at = node->next_edge(1);
    while (at.is_valid() && views.contains(at.function->name())) at = at.function->next_edge(0);
    if (!at.is_valid() || at.function->name() != "ExpandBackward0") return;
    const auto weight = parameter_(at.function->next_edge(0));
    if (!weight || weight->shape.size() < 2 || !input.defined() || input.size(0) != examples_) {
      return;
    }
    const std::vector<std::int64_t> matrix(weight->shape.end() - 2, weight->shape.end());
    add_linear(node, "linear", {weight->entry, weight->transposed, matrix},
               input.detach().reshape({-1, input.size(2)}), !weight->transposed);
    explained_.insert(at.function.get());
  }

  // input: (n·T)×K
  void add_linear(const std::shared_ptr<Node>& node, const char* operation,
                  const ParameterEdge& weight, const at::Tensor& input, bool inputs_first) {
    MatrixUse use;
    use.entry = weight.entry;
    use.operation = operation;
    use.unfolding.extent[2] = input.size(0) / examples_;
    use.unfolding.channels = input.size(1);
    use.outputs = weight.shape[1];
    use.inputs_first = inputs_first;
    use.input = input.reshape({examples_, -1}).contiguous();
    use.capture = capture_(node);
    matrix_uses.push_back(std::move(use));
  }

  void read_embedding(const std::shared_ptr<Node>& node, generated::EmbeddingBackward0& embedding) {
    const auto weight = parameter_(node->next_edge(0));
    const at::Tensor indices = embedding.indices_.unpack();
    if (!weight || weight->transposed || embedding.scale_grad_by_freq || embedding.sparse ||
        indices.size(0) != examples_) {
      return;
    }
    // A look-up is a product with one-hot rows; the padding index gets no gradient.
    const at::Tensor flat = indices.reshape({-1});
    at::Tensor one_hot = at::one_hot(flat, weight->shape[0]).to(scalar_type_of(node));
    if (embedding.padding_idx >= 0)
      one_hot.masked_fill_((flat == embedding.padding_idx).unsqueeze(1), 0);
    add_linear(node, "embedding", *weight, one_hot, /*inputs_first=*/true);
    accounted_[0] = true;
  }

  void read_batch_norm(const std::shared_ptr<Node>& node,
                       generated::NativeBatchNormBackward0& norm) {
    if (norm.training) {
      fail(
          "model: batch norm runs in training mode, so that examples depend on each other; "
          "call eval() before saving the model");
    }
    const at::Tensor input = norm.input_.unpack().detach();
    std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
    shape[1] = input.size(1);
    const at::Tensor mean = norm.running_mean_.unpack().detach().view(shape);
    const at::Tensor scale = (norm.running_var_.unpack().detach() + norm.eps).rsqrt().view(shape);
    if (const auto own = parameter_(node->next_edge(1)); own && !own->transposed) {
      const at::Tensor centre = mean.reshape({-1}).to(input.scalar_type());
      const at::Tensor factor = scale.reshape({-1}).to(input.scalar_type());
      add_vector(node, 1, "batch norm", *own, [=](const at::Tensor& gradient) {
        return channel_sums(gradient, input, centre, factor);
      });
    }
    read_shift(node, 2, "batch norm", 1, /*channel_axis=*/true);
    const at::Tensor gain = norm.weight_.unpack();
    const at::Tensor factor = gain.defined() ? scale * gain.detach().view(shape) : scale;
    stand_ins.emplace_back(
        node.get(), std::make_shared<FrozenBatchNormBackward>(factor, input, node->next_edge(0)));
  }

  void read_layer_norm(const std::shared_ptr<Node>& node,
                       generated::NativeLayerNormBackward0& norm) {
    const at::Tensor input = norm.input_.unpack().detach();
    const at::Tensor mean = norm.result1_.unpack(node).detach();
    const at::Tensor inverse_deviation = norm.result2_.unpack(node).detach();
    const auto scale = parameter_(node->next_edge(1));
    const std::vector<std::int64_t> shape = scale ? scale->shape : std::vector<std::int64_t>{};
    read_scale(
        node, "layer norm", [=] { return (input - mean) * inverse_deviation; }, shape);
    read_shift(node, 2, "layer norm", 1);
  }

  void read_group_norm(const std::shared_ptr<Node>& node,
                       generated::NativeGroupNormBackward0& norm) {
    const at::Tensor input = norm.input_.unpack().detach();
    const at::Tensor mean = norm.result1_.unpack(node).detach().unsqueeze(2);
    const at::Tensor inverse_deviation = norm.result2_.unpack(node).detach().unsqueeze(2);
    const std::int64_t groups = norm.group;
    std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
    shape[1] = input.size(1);
    const auto normalized = [=] {
      const at::Tensor grouped = input.reshape({input.size(0), groups, -1});
      return ((grouped - mean) * inverse_deviation).view(input.sizes());
    };
    read_scale(node, "group norm", normalized, shape);
    read_shift(node, 2, "group norm", 1, /*channel_axis=*/true);
  }

  // Scale of a norm: Σ B ∘ x̂. `shape` is how the parameter lies along the input's axes.
  void read_scale(const std::shared_ptr<Node>& node, const char* operation,
                  std::function<at::Tensor()> normalized, std::vector<std::int64_t> shape) {
    const auto scale = parameter_(node->next_edge(1));
    if (!scale || scale->transposed) return;
    // x̂ serves all backward passes of the chunk; it is made at the first.
    auto kept = std::make_shared<at::Tensor>();
    add_vector(node, 1, operation, *scale, [=](const at::Tensor& gradient) {
      if (!kept->defined()) *kept = normalized();
      return summed_to(gradient * *kept, shape);
    });
  }

  // A summand: factor · Σ B. `channel_axis`: the parameter lies along axis 1, not along the last
  // ones.
  void read_shift(const std::shared_ptr<Node>& node, std::size_t edge, const char* operation,
                  double factor, bool channel_axis = false) {
    if (edge >= node->num_outputs()) return;
    const auto shift = parameter_(node->next_edge(edge));
    if (!shift || shift->transposed) return;
    const bool folded = node->name() == "AddmmBackward0";  // (n·T)×O
    const std::int64_t examples = examples_;
    const std::vector<std::int64_t> own_shape = shift->shape;
    add_vector(node, edge, operation, *shift, [=](const at::Tensor& gradient) {
      const at::Tensor arranged =
          folded ? gradient.reshape({examples, -1, gradient.size(-1)}) : gradient;
      const at::Tensor sum = channel_axis ? channel_sums(arranged) : summed_to(arranged, own_shape);
      return factor == 1 ? sum : sum * factor;
    });
  }

  void add_vector(const std::shared_ptr<Node>& node, std::size_t edge, const char* operation,
                  const ParameterEdge& parameter,
                  std::function<at::Tensor(const at::Tensor&)> gradient) {
    vector_uses.push_back({parameter.entry, operation, capture_(node), std::move(gradient)});
    accounted_[edge] = true;
  }

  static at::ScalarType scalar_type_of(const std::shared_ptr<Node>& node) {
    return c10::typeMetaToScalarType(node->input_metadata(0).options().dtype());
  }

  std::function<std::optional<ParameterEdge>(const Edge&)> parameter_;
  std::function<std::size_t(const std::shared_ptr<Node>&)> capture_;
  std::int64_t examples_;
  std::vector<bool> accounted_;
  std::unordered_set<Node*> explained_;  // expansions that a rule further on has accounted for
};

// All nodes between the logits and the parameters, last executed first: the same order for every
// chunk.
std::vector<std::shared_ptr<Node>> nodes_from(const std::shared_ptr<Node>& root) {
  std::vector<std::shared_ptr<Node>> nodes{root};
  std::unordered_set<Node*> seen{root.get()};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Edge& edge : nodes[i]->next_edges()) {
      if (edge.is_valid() && seen.insert(edge.function.get()).second)
        nodes.push_back(edge.function);
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& left, const auto& right) {
    return left->sequence_nr() > right->sequence_nr();
  });
  return nodes;
}

}  // namespace

LayerSignals::LayerSignals(const Model& model, const Weights& weights, const at::Tensor& inputs)
    : graph_(std::make_unique<Graph>()) {
  at::AutoGradMode with_gradient(true);
  Graph& graph = *graph_;
  graph.weights = {weights.layout, weights.flat.detach().requires_grad_()};
  graph.examples = inputs.size(0);
  graph.logits = model.logits(graph.weights, inputs);
  if (!graph.logits.grad_fn()) return;  // nothing depends on the weights
  graph.nodes = nodes_from(graph.logits.grad_fn());
  const std::vector<std::shared_ptr<Node>>& nodes = graph.nodes;
  const Node* leaf = torch::autograd::impl::grad_accumulator(graph.weights.flat).get();
  for (const auto& node : nodes) {
    if (node->num_outputs() > 0 && node->next_edge(0).function.get() == leaf) {
      graph.parameters = node;
    }
  }
  if (!graph.parameters) return;

  RuleBook rules([&](const Edge& edge) { return graph.parameter(edge); },
                 [&](const std::shared_ptr<Node>& node) { return graph.capture(node); },
                 graph.examples);
  // Nodes come consumers first, so what follows a node is known when it is its turn.
  std::unordered_set<Node*> disturbed;
  for (const auto& node : nodes) {
    const std::string name = node->name();
    // Views and transpositions are part of the way from the parameters; uses are found at its other
    // end.
    const bool on_the_way = views.contains(name) || is_transposition(name);
    if (node != graph.parameters && !on_the_way) rules.read(node);
    const bool product = name == "AddmmBackward0" || name == "MmBackward0";
    const bool fixed = on_the_way || fixed_linear.contains(name) ||
                       name.starts_with("ConvolutionBackward") ||
                       (product && graph.parameter(node->next_edge(node->num_outputs() - 1)));
    if (!fixed || disturbed.contains(node.get())) {
      for (const Edge& edge : node->next_edges()) {
        if (edge.is_valid()) disturbed.insert(edge.function.get());
      }
    }
  }
  matrix_uses_ = std::move(rules.matrix_uses);
  vector_uses_ = std::move(rules.vector_uses);
  without_rule_ = std::move(rules.without_rule);
  graph.stand_ins = std::move(rules.stand_ins);
  for (MatrixUse& use : matrix_uses_) {
    use.linear_to_logits = !disturbed.contains(graph.captures[use.capture].function.get());
  }
}

LayerSignals::~LayerSignals() = default;

const at::Tensor& LayerSignals::logits() const {
  return graph_->logits;
}
std::size_t LayerSignals::captures() const {
  return graph_->captures.size();
}

std::vector<at::Tensor> LayerSignals::output_gradients(
    const at::Tensor& seeds, const std::vector<std::size_t>& captures) const {
  if (captures.empty()) return {};
  graph_->use_stand_ins();
  std::vector<Edge> wanted;
  for (const std::size_t capture : captures) wanted.push_back(graph_->captures[capture]);
  const Edge root = torch::autograd::impl::gradient_edge(graph_->logits);
  at::AutoGradMode without_gradient(false);
  std::vector<at::Tensor> found = torch::autograd::Engine::get_default_engine().execute(
      {root}, {seeds.to(graph_->logits.scalar_type())}, /*keep_graph=*/true,
      /*create_graph=*/false, /*accumulate_grad=*/false, wanted);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) {
      found[i] = zeros_at(wanted[i]);
    }
  }
  return found;
}

at::Tensor LayerSignals::by_position(const MatrixUse& use, const at::Tensor& output_gradient) {
  const at::Tensor last =
      use.operation == "convolution" ? channels_last_rows(output_gradient) : output_gradient;
  return last.reshape({-1, use.positions(), use.outputs});
}

std::vector<at::Tensor> LayerSignals::entry_gradients(
    const at::Tensor& seeds, const std::vector<std::size_t>& entries) const {
  assert(!graph_->parameters ||
         !graph_->nodes.empty());  // no output gradients were asked for before
  std::vector<at::Tensor> found(entries.size());
  if (graph_->parameters) {
    std::vector<Edge> wanted;
    for (const std::size_t entry : entries) {
      wanted.emplace_back(graph_->parameters, static_cast<std::uint32_t>(entry));
    }
    const Edge root = torch::autograd::impl::gradient_edge(graph_->logits);
    at::AutoGradMode without_gradient(false);
    found = torch::autograd::Engine::get_default_engine().execute(
        {root}, {seeds.to(graph_->logits.scalar_type())}, /*keep_graph=*/true,
        /*create_graph=*/false, /*accumulate_grad=*/false, wanted);
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined())
      found[i] = at::zeros({graph_->entry(entries[i]).count}, graph_->weights.flat.options());
    found[i] = found[i].reshape({-1}).detach();
  }
  return found;
}

}  // namespace pumice
