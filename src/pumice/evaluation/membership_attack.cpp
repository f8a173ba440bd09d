#include "pumice/evaluation/membership_attack.h"

#include <svm.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>

#include "pumice/core/error.h"

namespace pumice {
namespace {

constexpr double cache_megabytes = 200;
constexpr double low_rate = 0.01;

std::vector<double> to_vector(const at::Tensor& values) {
  const at::Tensor wide = values.to(at::kDouble).contiguous();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

void check_logits(const at::Tensor& logits) {
  if (logits.dim() != 2) fail("logits: shape ", logits.sizes(), ", must be N×c");
}

void check_features(const char* whose, const std::vector<double>& features) {
  if (features.size() < 2) {
    fail("membership attack: ", features.size(), " ", whose,
         " examples, the classifier needs at least 2 of them");
  }
  for (const double value : features) {
    if (!std::isfinite(value)) {
      fail("membership attack: the output for a ", whose, " example is not finite");
    }
  }
}

void check(const SupportVectorOptions& options) {
  const auto positive = [](const char* name, double value) {
    if (!(value > 0) || !std::isfinite(value)) fail(name, ": ", value, ", must be > 0");
  };
  positive("cost", options.cost);
  positive("gamma", options.gamma);
  positive("tolerance", options.tolerance);
}

svm_parameter parameters(const SupportVectorOptions& options) {
  svm_parameter parameter{};
  parameter.svm_type = C_SVC;
  parameter.kernel_type = RBF;
  parameter.gamma = options.gamma;
  parameter.C = options.cost;
  parameter.eps = options.tolerance;
  parameter.cache_size = cache_megabytes;
  parameter.shrinking = 1;
  return parameter;
}

struct ModelDeleter {
  void operator()(svm_model* model) const { svm_free_and_destroy_model(&model); }
};

double share_at(const std::vector<double>& features, const SupportVectorClassifier& classifier,
                bool member) {
  const auto right = std::count_if(features.begin(), features.end(), [&](double feature) {
    return (classifier.decision(feature) > 0) == member;
  });
  return static_cast<double>(right) / static_cast<double>(features.size());
}

}  // namespace

std::vector<double> softmax_entropies(const at::Tensor& logits) {
  check_logits(logits);
  const at::Tensor logarithms = logits.to(at::kDouble).log_softmax(1);
  return to_vector(-(logarithms.exp() * logarithms).sum(1));
}

std::vector<double> margins(const at::Tensor& logits, const at::Tensor& labels) {
  check_logits(logits);
  if (logits.size(1) < 2) fail("margins: ", logits.size(1), " classes, there must be at least 2");
  if (labels.dim() != 1 || labels.size(0) != logits.size(0)) {
    fail("labels: shape ", labels.sizes(), ", must be ", logits.size(0), " values");
  }
  const at::Tensor wide = logits.to(at::kDouble);
  const at::Tensor place = labels.unsqueeze(1);
  const at::Tensor others =
      wide.scatter(1, place, -std::numeric_limits<double>::infinity()).logsumexp(1);
  return to_vector(wide.gather(1, place).squeeze(1) - others);
}

double SupportVectorClassifier::decision(double feature) const {
  double sum = -offset;
  for (std::size_t i = 0; i < support.size(); ++i) {
    const double distance = feature - support[i];
    sum += coefficients[i] * std::exp(-gamma * distance * distance);
  }
  return sum;
}

SupportVectorClassifier train_classifier(std::vector<double> members, std::vector<double> others,
                                         const SupportVectorOptions& options) {
  check(options);
  check_features("retained", members);
  check_features("test", others);
  std::sort(members.begin(), members.end());
  std::sort(others.begin(), others.end());

  // Members come first, so that libsvm's first class, the positive one, is theirs.
  std::vector<double> features = members;
  features.insert(features.end(), others.begin(), others.end());
  std::vector<double> classes(features.size(), -1);
  std::fill_n(classes.begin(), members.size(), 1);
  std::vector<std::array<svm_node, 2>> nodes;
  for (const double feature : features) nodes.push_back({{{1, feature}, {-1, 0}}});
  std::vector<svm_node*> rows;
  for (auto& row : nodes) rows.push_back(row.data());
  const svm_problem problem{static_cast<int>(rows.size()), classes.data(), rows.data()};
  const svm_parameter parameter = parameters(options);
  svm_set_print_string_function([](const char*) {});
  const std::unique_ptr<svm_model, ModelDeleter> model(svm_train(&problem, &parameter));
  assert(model->nr_class == 2 && model->label[0] == 1);

  SupportVectorClassifier classifier{.offset = model->rho[0], .gamma = options.gamma};
  for (int i = 0; i < model->l; ++i) {
    classifier.support.push_back(model->SV[i]->value);
    classifier.coefficients.push_back(model->sv_coef[0][i]);
  }
  return classifier;
}

EntropyAttack entropy_attack(const at::Tensor& cohort, const at::Tensor& retain,
                             const at::Tensor& test, const SupportVectorOptions& options) {
  if (cohort.size(0) < 1) fail("membership attack: the cohort is empty");
  const std::vector<double> members = softmax_entropies(retain);
  const std::vector<double> others = softmax_entropies(test);
  const std::vector<double> asked = softmax_entropies(cohort);
  EntropyAttack attack;
  attack.classifier = train_classifier(members, others, options);
  attack.cohort = static_cast<std::int64_t>(asked.size());
  for (const double entropy : asked) {
    if (!std::isfinite(entropy)) fail("membership attack: an output for the cohort is not finite");
    attack.called_members += attack.classifier.decision(entropy) > 0;
  }
  attack.retain_recognised = share_at(members, attack.classifier, true);
  attack.test_recognised = share_at(others, attack.classifier, false);
  return attack;
}

Readout entropy_attack_readout(const EntropyAttack& attack) {
  return share_readout("membership attack",
                       "share of the cohort that a support vector classifier, trained to tell "
                       "retained from test examples by the entropy of the outputs, calls members",
                       ReadoutDirection::like_retrained, attack.called_members, attack.cohort);
}

ThresholdAttack threshold_attack(const std::vector<double>& members,
                                 const std::vector<double>& others) {
  if (members.empty() || others.empty()) {
    fail("threshold attack: ", members.size(), " members and ", others.size(),
         " others, there must be at least one of each");
  }
  std::vector<std::pair<double, bool>> scores;  // (score, member)
  for (const double score : members) scores.emplace_back(score, true);
  for (const double score : others) scores.emplace_back(score, false);
  for (const auto& [score, member] : scores) {
    if (std::isnan(score)) fail("threshold attack: a score is not a number");
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  const auto m = static_cast<double>(members.size());
  const auto n = static_cast<double>(others.size());

  ThresholdAttack attack;
  attack.members = static_cast<std::int64_t>(members.size());
  attack.others = static_cast<std::int64_t>(others.size());
  attack.curve.push_back({std::numeric_limits<double>::infinity(), 0, 0});
  double called_members = 0, called_others = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size();) {
    const double threshold = scores[i].first;
    double own = 0, foreign = 0;
    for (; i < scores.size() && scores[i].first == threshold; ++i) {
      (scores[i].second ? own : foreign) += 1;
    }
    pairs += foreign * (called_members + own / 2);
    called_members += own;
    called_others += foreign;
    attack.curve.push_back({threshold, called_others / n, called_members / m});
  }
  attack.area = pairs / (m * n);
  return attack;
}

double ThresholdAttack::true_positive_rate_at(double false_positive_rate) const {
  double best = 0;
  for (const RocPoint& point : curve) {
    if (point.false_positive_rate <= false_positive_rate) {
      best = std::max(best, point.true_positive_rate);
    }
  }
  return best;
}

Interval area_interval(double area, std::int64_t members, std::int64_t others, double confidence) {
  if (!(area >= 0 && area <= 1)) fail("area under the curve: ", area, ", must be in [0, 1]");
  if (!(confidence > 0 && confidence < 1)) {
    fail("confidence: ", confidence, ", must be between 0 and 1");
  }
  if (members < 1 || others < 1) {
    fail("area under the curve: of ", members, " members and ", others,
         " others, there must be at least one of each");
  }
  const double z = normal_quantile((1 + confidence) / 2);
  const double mean_count = static_cast<double>(members + others) / 2;
  const double pairs = static_cast<double>(members) * static_cast<double>(others);
  const auto accepted = [&](double theta) {
    const double variance =
        theta * (1 - theta) *
        (1 + (mean_count - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / pairs;
    return (area - theta) * (area - theta) <= z * z * variance;
  };
  // `area` itself is accepted (or is 0 or 1, where what is accepted begins), the far end is not.
  const auto boundary = [&](double far) {
    double near = area;
    for (int i = 0; i < 100; ++i) {
      const double middle = (near + far) / 2;
      (accepted(middle) ? near : far) = middle;
    }
    return near;
  };
  return {.low = area > 0 ? boundary(0) : 0,
          .high = area < 1 ? boundary(1) : 1,
          .method = text("Newcombe's score interval, ", 100 * confidence, " %")};
}

std::vector<Readout> threshold_attack_readouts(const ThresholdAttack& attack,
                                               const std::string& members) {
  const Readout area{
      .name = "margin attack on " + members + ", area",
      .unit = "share",
      .definition = text("area under the curve: chance that one of ", members,
                         " has a larger margin (log-odds of the true class) than a test example, "
                         "ties half"),
      .direction = ReadoutDirection::like_retrained,
      .value = attack.area,
      .interval = area_interval(attack.area, attack.members, attack.others)};
  const double rate = attack.true_positive_rate_at(low_rate);
  const auto called = std::llround(rate * static_cast<double>(attack.members));
  Readout at_low_rate =
      share_readout("margin attack on " + members + ", found at 1 % false alarms",
                    text("true positive rate: share of ", members,
                         " above the smallest margin that at most 1 % of the test examples reach"),
                    ReadoutDirection::like_retrained, called, attack.members);
  at_low_rate.interval->method += ", for a given threshold";
  return {area, at_low_rate};
}

}  // namespace pumice
