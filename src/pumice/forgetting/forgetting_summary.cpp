#include "pumice/forgetting/forgetting_summary.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "pumice/core/progress.h"

namespace pumice {
namespace {

std::string number(double value) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.4g", value);
  return out.data();
}

// "  name            value   what it means"
std::string line(const std::string& name, const std::string& value, const std::string& meaning) {
  std::array<char, 256> out{};
  std::snprintf(out.data(), out.size(), "  %-22s %-12s %s\n", name.c_str(), value.c_str(),
                meaning.c_str());
  return out.data();
}

template <typename Value>
void put(nlohmann::json& json, const char* key, const std::optional<Value>& value) {
  if (value) json[key] = *value;
}

}  // namespace

std::string ForgettingSummary::brief() const {
  std::string out = method + ": ";
  if (!converged) return out + "did not succeed, " + explanation;
  out += "|shift| = " + number(shift_norm);
  if (scale) out += ", scale " + number(*scale);
  if (ridge) out += ", ridge " + number(*ridge);
  if (!near_enough.value_or(true)) out += ", less exact than the rules of docs/scale.md want";
  if (reference) out += ", cosine to retrained " + number(reference->cosine);
  out += noise ? ", noise " + number(noise->scale) + " (" + noise->shape + ")" : ", no noise";
  return out + ", " + duration_text(seconds) + ", " + number(epoch_equivalents) + " epochs' work";
}

std::string ForgettingSummary::full() const {
  std::string out = method + "\n";
  if (!converged) out += line("converged", "no", explanation);
  out += line("|shift|", number(shift_norm), "how far the weights moved");
  out += line("|w - centre|", number(displacement_norm), "how far training had moved them");
  if (direction_norm) out += line("|direction|", number(*direction_norm), "before scaling");
  if (scale) out += line("scale", number(*scale), scale_rule);
  if (ridge) out += line("ridge", number(*ridge), "the weight decay that the solve used");
  if (curvature) out += line("curvature", *curvature, "");
  if (linearized_at) out += line("linearised at", *linearized_at, "");
  if (trapezium) {
    out += line("trapezium cosine", number(trapezium->cosine), "of the direction to the error");
    out += line("trapezium scale", number(trapezium->scale), "");
  }
  if (margins) {
    out += line("cohort's margin", number(margins->before),
                "before; unseen examples of its hardness: " + number(margins->target));
  }
  if (solver)
    out += line("solver", *solver, shared_kernel ? "with the kernel of before" : solver_reason);
  if (relative_residual) out += line("relative residual", number(*relative_residual), "");
  if (condition_estimate) out += line("condition, at least", number(*condition_estimate), "");
  if (iterations) out += line("iterations", std::to_string(*iterations), "of conjugate gradients");
  if (error_bound) {
    out += line("error, at most", number(*error_bound),
                std::string("of the solution, in its energy norm") +
                    (near_enough.value_or(true) ? "" : "; the rules of docs/scale.md wanted less"));
  }
  if (preconditioner) {
    out +=
        line("preconditioner", std::to_string(*preconditioner), "examples, by Woodbury's identity");
  }
  if (epochs) out += line("epochs", std::to_string(*epochs), "of training");
  if (reference) {
    const std::string models = std::to_string(reference->count) + " retrained";
    out += line("cosine to retrained", number(reference->cosine),
                "of the shift to the true one, mean of " + models);
    out += line("norm ratio", number(reference->norm_ratio), "|shift| / |true shift|");
    out += line("distance", number(reference->distance), "to the mean of " + models);
    if (reference->floor) {
      out += line("floor", number(*reference->floor), "mean distance between two retrained models");
    }
  }
  if (noise) {
    out += line("noise scale", number(noise->scale), "shape " + noise->shape);
    out += line("expected |noise|", number(noise->norm), "");
  }
  if (forecast_seconds) out += line("forecast", duration_text(*forecast_seconds), "of the solve");
  out += line("time", duration_text(seconds),
              number(epoch_equivalents) + " times the work of a training epoch");
  for (const std::string& parameter : slow_parameters) {
    out += line("without a rule", "", parameter);
  }
  return out;
}

nlohmann::json to_json(const ForgettingSummary& summary) {
  nlohmann::json json{{"method", summary.method},
                      {"converged", summary.converged},
                      {"shift_norm", summary.shift_norm},
                      {"displacement_norm", summary.displacement_norm},
                      {"seconds", summary.seconds},
                      {"epoch_equivalents", summary.epoch_equivalents},
                      {"shared_kernel", summary.shared_kernel}};
  if (!summary.explanation.empty()) json["explanation"] = summary.explanation;
  put(json, "direction_norm", summary.direction_norm);
  put(json, "ridge", summary.ridge);
  put(json, "scale", summary.scale);
  if (!summary.scale_rule.empty()) json["scale_rule"] = summary.scale_rule;
  put(json, "curvature", summary.curvature);
  put(json, "linearized_at", summary.linearized_at);
  put(json, "solver", summary.solver);
  put(json, "relative_residual", summary.relative_residual);
  put(json, "condition_estimate", summary.condition_estimate);
  put(json, "iterations", summary.iterations);
  put(json, "error_bound", summary.error_bound);
  put(json, "near_enough", summary.near_enough);
  put(json, "preconditioner", summary.preconditioner);
  if (!summary.solver_reason.empty()) json["solver_reason"] = summary.solver_reason;
  put(json, "forecast_seconds", summary.forecast_seconds);
  put(json, "epochs", summary.epochs);
  if (!summary.slow_parameters.empty()) json["without_rule"] = summary.slow_parameters;
  if (summary.trapezium) {
    json["trapezium"] = {{"cosine", summary.trapezium->cosine},
                         {"angle", summary.trapezium->angle},
                         {"error_norm", summary.trapezium->error_norm},
                         {"scale", summary.trapezium->scale}};
  }
  if (summary.margins) {
    json["margins"] = {{"unseen_examples", summary.margins->unseen_examples},
                       {"unseen", summary.margins->unseen},
                       {"slope", summary.margins->slope},
                       {"target", summary.margins->target},
                       {"before", summary.margins->before},
                       {"matched_scale", summary.margins->matched_scale}};
  }
  if (summary.reference) {
    json["reference"] = {{"count", summary.reference->count},
                         {"cosine", summary.reference->cosine},
                         {"norm_ratio", summary.reference->norm_ratio},
                         {"distance", summary.reference->distance}};
    put(json["reference"], "floor", summary.reference->floor);
  }
  if (summary.noise) {
    json["noise"] = {{"scale", summary.noise->scale},
                     {"shape", summary.noise->shape},
                     {"epsilon", summary.noise->epsilon},
                     {"expected_norm", summary.noise->norm},
                     {"private", !summary.noise->reproducible}};
    put(json["noise"], "cap", summary.noise->cap);
  }
  return json;
}

}  // namespace pumice
