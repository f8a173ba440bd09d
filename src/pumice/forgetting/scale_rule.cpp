#include "pumice/forgetting/scale_rule.h"

#include <algorithm>
#include <cmath>

#include "pumice/core/error.h"
#include "pumice/core/seed.h"
#include "pumice/linalg/cholesky.h"
#include "pumice/linearization/last_layer.h"

namespace pumice {
namespace {

constexpr double usual_scale = 2;
constexpr double largest_scale = 8;
constexpr double pseudo_examples = 5;
constexpr double probe_decay = 0.01;
constexpr std::size_t most_for_probe = 5000;

at::Tensor index_of(const std::vector<std::int64_t>& positions) {
  return at::tensor(positions, at::kLong);
}

at::Tensor margins(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor wide = logits.to(at::kDouble);
  const at::Tensor own = wide.gather(1, labels.unsqueeze(1)).squeeze(1);
  const at::Tensor others =
      wide.scatter(1, labels.unsqueeze(1), -std::numeric_limits<double>::infinity());
  return own - std::get<0>(others.max(1));
}

at::Tensor all_logits(const ForgettingTask& task, const at::Tensor& flat,
                      const at::Tensor& inputs) {
  at::NoGradGuard no_gradient;
  constexpr std::int64_t at_once = 128;
  std::vector<at::Tensor> parts;
  const Weights weights{task.weights.layout, flat.to(task.weights.flat.scalar_type())};
  for (const at::Tensor& batch : inputs.split(at_once)) {
    parts.push_back(task.model.logits(weights, batch));
  }
  return at::cat(parts);
}

// More do not make a linear classifier better, and their features take memory.
std::vector<std::int64_t> retained_for_probe(const std::vector<std::int64_t>& retain) {
  if (retain.size() <= most_for_probe) return retain;
  std::vector<std::int64_t> drawn =
      RandomStream(1, "probe").permutation(static_cast<std::int64_t>(retain.size()));
  drawn.resize(most_for_probe);
  std::sort(drawn.begin(), drawn.end());
  for (std::int64_t& place : drawn) place = retain[static_cast<std::size_t>(place)];
  return drawn;
}

// Step 1 and 2: the margin that an unseen cohort would have.
MarginSummary margin_target(const ForgettingTask& task) {
  const Weights start{task.weights.layout, task.start->to(task.weights.flat.scalar_type())};
  const auto features = [&](const at::Tensor& images) {
    return last_layer_inputs(task.model, start, InputSource(images, task.normalization))
        .to(at::kDouble);
  };
  const std::vector<std::int64_t> retained = retained_for_probe(task.split.retain);
  const at::Tensor retain = index_of(retained), cohort = index_of(task.split.cohort);
  const auto known = static_cast<std::int64_t>(retained.size());
  const at::Tensor train = features(task.train.images.index_select(0, at::cat({retain, cohort})));
  const at::Tensor unseen = features(task.validation->images);
  const at::Tensor mean = train.mean(0), deviation = train.std(0) + 1e-6;
  const at::Tensor& labels = task.train.labels;
  const at::Tensor probe = fit_linear_classifier(
      (train.narrow(0, 0, known) - mean) / deviation, labels.index_select(0, retain),
      at::zeros({task.train.classes.size(), train.size(1) + 1}, at::kDouble), probe_decay);
  const auto probed = [&](const at::Tensor& x, const at::Tensor& truth) {
    const at::Tensor answers =
        ((x - mean) / deviation).mm(probe.narrow(1, 0, x.size(1)).t()) + probe.select(1, x.size(1));
    return margins(answers, truth);
  };
  const at::Tensor x = probed(unseen, task.validation->labels);
  const at::Tensor y =
      margins(all_logits(task, task.weights.flat,
                         network_inputs(task.validation->images, task.normalization)),
              task.validation->labels);
  const double x_mean = x.mean().item<double>();
  MarginSummary summary;
  summary.unseen_examples = task.validation->size();
  summary.unseen = y.mean().item<double>();
  const double spread = (x - x_mean).square().sum().item<double>();
  summary.slope =
      spread > 0 ? ((x - x_mean) * (y - summary.unseen)).sum().item<double>() / spread : 0;
  const double hardness =
      probed(train.narrow(0, known, cohort.numel()), labels.index_select(0, cohort))
          .mean()
          .item<double>();
  summary.target = summary.unseen + summary.slope * (hardness - x_mean);
  return summary;
}

}  // namespace

at::Tensor fit_linear_classifier(const at::Tensor& features, const at::Tensor& labels,
                                 const at::Tensor& centre, double decay) {
  if (!(decay > 0)) fail("decay of the linear classifier: ", decay, ", must be > 0");
  const std::int64_t examples = features.size(0);
  const at::Tensor x = at::cat({features.to(at::kDouble), at::ones({examples, 1}, at::kDouble)}, 1);
  const std::int64_t width = x.size(1), classes = centre.size(0);
  const auto count = static_cast<double>(examples);
  at::Tensor weights = centre.to(at::kDouble);
  const auto objective = [&](const at::Tensor& at) {
    return at::cross_entropy_loss(x.mm(at.t()), labels).item<double>() +
           decay / 2 * (at - centre).square().sum().item<double>();
  };
  for (int iteration = 0; iteration < 50; ++iteration) {
    const at::Tensor shares = x.mm(weights.t()).softmax(1);
    const at::Tensor residual = shares - at::one_hot(labels, classes).to(at::kDouble);
    const at::Tensor gradient = residual.t().mm(x) / count + decay * (weights - centre);
    if (gradient.norm().item<double>() < 1e-8) break;
    at::Tensor hessian = at::empty({classes * width, classes * width}, at::kDouble);
    for (std::int64_t a = 0; a < classes; ++a) {
      for (std::int64_t b = 0; b <= a; ++b) {
        const at::Tensor weight =
            shares.select(1, a) * ((a == b ? 1.0 : 0.0) - shares.select(1, b));
        const at::Tensor block = (x * weight.unsqueeze(1)).t().mm(x) / count;
        hessian.narrow(0, a * width, width).narrow(1, b * width, width).copy_(block);
        hessian.narrow(0, b * width, width).narrow(1, a * width, width).copy_(block.t());
      }
    }
    hessian.diagonal().add_(decay);
    const Cholesky cholesky = Cholesky::factorize((hessian + hessian.t()) / 2);
    if (!cholesky.summary().succeeded) fail("linear classifier: ", cholesky.summary().brief());
    const at::Tensor step = cholesky.solve(gradient.reshape({-1})).view(weights.sizes());
    const double now = objective(weights);
    double length = 1;
    while (length > 1e-6 && !(objective(weights - length * step) < now)) length /= 2;
    if (length <= 1e-6) break;  // as far as float64 goes
    weights = weights - length * step;
  }
  return weights;
}

ScaleChoice scale_without_examples(const at::Tensor& displacement, const at::Tensor& wlin_all) {
  const double along = displacement.dot(wlin_all).item<double>();
  const double undershoot =
      along > 0 ? displacement.dot(displacement).item<double>() / along : usual_scale;
  return {.scale = std::min(usual_scale, std::pow(std::max(1.0, undershoot), 4)),
          .rule = "what networks need"};
}

ScaleChoice choose_scale(const ForgettingTask& task, const at::Tensor& direction,
                         const at::Tensor& displacement, const at::Tensor& wlin_all) {
  if (task.split.cohort.empty()) return {.scale = 1, .rule = "nothing to forget"};
  const ScaleChoice blind = scale_without_examples(displacement, wlin_all);
  const double usual = blind.scale;
  if (!task.validation || task.validation->size() < 2 || !task.start || task.split.retain.empty() ||
      task.loss != Loss::cross_entropy) {
    return {.scale = usual, .rule = blind.rule + "; unseen examples (--validation) would tell"};
  }
  ScaleChoice choice{.scale = usual, .rule = "margin of unseen examples of the same hardness"};
  MarginSummary summary = margin_target(task);
  const at::Tensor cohort = index_of(task.split.cohort);
  const at::Tensor inputs =
      network_inputs(task.train.images.index_select(0, cohort), task.normalization);
  const at::Tensor labels = task.train.labels.index_select(0, cohort);
  const at::Tensor wide = task.weights.flat.to(at::kDouble);
  const auto margin_at = [&](double scale) {
    return margins(all_logits(task, wide + direction * scale, inputs), labels)
        .mean()
        .item<double>();
  };
  summary.before = margin_at(0);
  double low = 1, high = largest_scale;
  if (margin_at(low) <= summary.target) {
    high = low;
  } else if (margin_at(high) > summary.target) {
    low = high;
  }
  for (int i = 0; i < 12 && low < high; ++i) {
    const double middle = (low + high) / 2;
    (margin_at(middle) > summary.target ? low : high) = middle;
  }
  summary.matched_scale = (low + high) / 2;
  const auto examples = static_cast<double>(task.split.cohort.size());
  const double share = examples / (examples + pseudo_examples);
  choice.scale = std::pow(summary.matched_scale, share) * std::pow(usual, 1 - share);
  choice.margins = summary;
  return choice;
}

}  // namespace pumice
