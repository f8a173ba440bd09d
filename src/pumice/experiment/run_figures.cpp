#include "pumice/experiment/run_figures.h"

#include "pumice/core/error.h"
#include "pumice/evaluation/activation_distance.h"
#include "pumice/experiment/loss_landscape.h"
#include "pumice/experiment/weight_plane.h"
#include "pumice/model/training_run.h"

namespace pumice {
namespace {

using Json = nlohmann::json;

Json ablation(RunContext& context, const MethodOptions& options, const std::string& name) {
  const ForgettingTask& task = context.task();
  const std::vector<Weights> references = context.references();
  const Scrubbed scrubbed =
      scrub(task, context.shared(), {.method = "ntk", .options = options, .noise = {}}, references);
  const bool at_start = options.linearize_at == LinearizeAt::start;
  Json json{{"name", name},
            {"curvature", curvature_name(*options.curvature)},
            {"linearize_at", at_start ? "start" : "weights"},
            {"trapezium", options.trapezium},
            {"converged", scrubbed.summary.converged}};
  if (!scrubbed.succeeded()) return json;
  const Dataset cohort = subset(task.train, task.split.cohort);
  const auto error = [&](const Dataset& dataset) {
    return evaluate(task.model, scrubbed.sample, dataset, task.normalization).error;
  };
  const at::Tensor inputs = network_inputs(cohort.images, task.normalization);
  const at::Tensor own = softmax_outputs(task.model, scrubbed.sample, inputs);
  double distance = 0;
  for (const Weights& reference : references) {
    const at::Tensor theirs = softmax_outputs(task.model, reference, inputs);
    distance += activation_distances(own, theirs).mean().item<double>() /
                static_cast<double>(references.size());
  }
  json.update({{"cohort_error", error(cohort)},
               {"retain_error", error(subset(task.train, task.split.retain))},
               {"test_error", error(context.data().selection.test)},
               {"distance_cohort", distance},
               {"cosine", scrubbed.summary.reference->cosine},
               {"shift_norm", scrubbed.summary.shift_norm}});
  return json;
}

Json point_json(const PlanePoint& point) {
  return {point[0], point[1]};
}

// w0, w(D), w(Dr) and every method's mean, in a plane.
Json points_in(RunContext& context, const WeightPlane& plane) {
  Json points{
      {"w0", point_json(coordinates(plane, context.start().start.weights.flat))},
      {"w(D)", point_json(coordinates(plane, context.trained(context.original_plan()).flat))},
      {"w(Dr)", point_json(coordinates(plane, context.trained(context.reference_plan(0)).flat))}};
  for (const MethodProtocol& method : context.protocol().methods) {
    if (const auto release = context.release_of(method)) {
      points[method.label] = point_json(coordinates(plane, release->distribution.mean.flat));
    }
  }
  return points;
}

std::vector<at::Tensor> path_of(RunContext& context, const RunContext::TrainingPlan& plan) {
  std::vector<at::Tensor> path{context.start().start.weights.flat};
  const std::filesystem::path out =
      context.setup().store().folder_of(context.key(plan)) / "w.safetensors";
  for (std::int64_t epoch = 1; std::filesystem::exists(epoch_path(out, epoch)); ++epoch) {
    path.push_back(open_checkpoint(epoch_path(out, epoch)).weights.flat);
  }
  return path;
}

}  // namespace

Json ablations(RunContext& context) {
  Json list = Json::array();
  for (const LinearizeAt at : {LinearizeAt::weights, LinearizeAt::start}) {
    for (const Curvature curvature : {Curvature::identity, Curvature::softmax}) {
      for (const bool trapezium : {true, false}) {
        const std::string name =
            text("ntk, H = ", curvature == Curvature::identity ? "I" : "softmax",
                 at == LinearizeAt::start ? ", at w0" : ", at w(D)",
                 trapezium ? ", trapezium" : ", no trapezium");
        list.push_back(ablation(
            context, {.curvature = curvature, .linearize_at = at, .trapezium = trapezium}, name));
        context.tell("ablations", static_cast<double>(list.size()) / 8);
      }
    }
  }
  return list;
}

Json landscape(RunContext& context) {
  const ForgettingTask& task = context.task();
  const auto examples = [&](const Dataset& dataset) {
    return loss_examples(dataset, task.normalization, landscape_examples);
  };
  const std::vector<std::pair<std::string, LossExamples>> sets{
      {"cohort", examples(subset(task.train, task.split.cohort))},
      {"retain", examples(subset(task.train, task.split.retain))},
      {"test", examples(context.data().selection.test)}};
  const Weights& start = context.start().start.weights;
  const Weights& original = context.trained(context.original_plan());
  const Weights& retrained = context.trained(context.reference_plan(0));
  const std::vector<double> positions = evenly_spaced(-0.5, 1.5, line_positions);
  Json lines = Json::array();
  for (const auto& [name, from, to] : {std::tuple{"w0 to w(D)", &start, &original},
                                       std::tuple{"w(D) to w(Dr)", &original, &retrained}}) {
    Json line{{"name", name}, {"positions", positions}};
    for (const auto& [set, own] : sets) {
      line[set] = losses_along(task.model, *from, *to, positions, own);
      context.tell("losses along lines", 0);
    }
    lines.push_back(line);
  }
  const WeightPlane plane = plane_through(start.flat, original.flat, retrained.flat);
  const LossSurface surface =
      loss_surface(task.model, start, plane,
                   {{0, 0}, coordinates(plane, original.flat), coordinates(plane, retrained.flat)},
                   sets[1].second, surface_side, 0.35,
                   [&](double share) { context.tell("loss surface", share); });
  return {{"lines", lines},
          {"examples", landscape_examples},
          {"surface",
           {{"x", surface.x},
            {"y", surface.y},
            {"loss", surface.loss},
            {"points", points_in(context, plane)},
            {"x_label", "along w0 to w(D)"},
            {"y_label", "orthogonal to it, towards w(Dr)"}}}};
}

Json projection(RunContext& context) {
  const std::vector<at::Tensor> with = path_of(context, context.original_plan());
  const std::vector<at::Tensor> without = path_of(context, context.reference_plan(0));
  std::vector<at::Tensor> all = with;
  all.insert(all.end(), without.begin() + 1, without.end());  // w0 once
  const PrincipalPlane principal = principal_plane(all);
  const auto path_json = [&](const std::vector<at::Tensor>& path) {
    Json json = Json::array();
    for (const at::Tensor& flat : path)
      json.push_back(point_json(coordinates(principal.plane, flat)));
    return json;
  };
  Json clouds = Json::object();
  for (const MethodProtocol& method : context.protocol().methods) {
    const auto release = context.release_of(method);
    if (!release || release->distribution.deterministic()) continue;
    const PlaneNoise noise = noise_in(principal.plane, release->distribution.variance);
    clouds[method.label] = {{"x", noise.x}, {"y", noise.y}, {"xy", noise.xy}};
  }
  return {{"explained", principal.explained},
          {"paths", {{"D", path_json(with)}, {"Dr", path_json(without)}}},
          {"points", points_in(context, principal.plane)},
          {"clouds", clouds}};
}

}  // namespace pumice
