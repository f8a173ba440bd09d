// What LinearProblem knows of a few examples: how many iterations a solve without the kernel will
// take, and the preconditioner that they make for it; what either may take of the memory.
#include <algorithm>
#include <set>

#include "pumice/core/error.h"
#include "pumice/core/memory.h"
#include "pumice/core/seed.h"
#include "pumice/forgetting/dual_solve.h"
#include "pumice/forgetting/linear_problem.h"
#include "pumice/linearization/woodbury_preconditioner.h"

namespace pumice {
namespace {

// Rows of the kernel of the sample from which iterations are estimated; few enough that it takes no
// longer than a product or two.
constexpr std::int64_t sample_rows = 1024;
constexpr std::int64_t smallest_sample = 16;  // examples, as far as their rows are few enough
// Of a preconditioner that is not asked for: its share of the examples, its rows and its share of
// the memory at most. Not all examples: P⁻¹ would be A⁻¹ up to float32 rounding over the ridge.
constexpr std::int64_t preconditioner_share = 5;
constexpr std::int64_t preconditioner_rows = 4096;
constexpr double preconditioner_share_of_memory = 0.25;
// Examples that must still pass through the network together: smaller batches are slower.
constexpr std::int64_t batch_beside_preconditioner = 16;

}  // namespace

std::int64_t LinearProblem::memory() const {
  return options_.memory ? *options_.memory : available_memory() / 2;
}

std::int64_t LinearProblem::sample_size() const {
  const std::int64_t least =
      std::clamp<std::int64_t>(preconditioner_rows / classes(), 2, smallest_sample);
  return std::min(examples(), std::max(least, sample_rows / classes()));
}

// The sum while it is made, its transpose, the inner matrix and its factor.
std::int64_t LinearProblem::sample_bytes(std::int64_t size) const {
  const std::int64_t rows = size * classes();
  return 4 * rows * rows * 8;
}

std::int64_t LinearProblem::largest_preconditioner() const {
  if (options_.preconditioner) return std::min(*options_.preconditioner, examples());
  std::int64_t most = std::min(examples() / preconditioner_share, preconditioner_rows / classes());
  const std::int64_t beside = memory() - vector_bytes() - sample_bytes(sample_size()) / 4 -
                              batch_beside_preconditioner * stream_.bytes_per_example();
  const double room = std::min(preconditioner_share_of_memory * static_cast<double>(memory()),
                               static_cast<double>(beside));
  while (most > sample_size() && static_cast<double>(sample_bytes(most)) > room) most /= 2;
  return most;
}

std::int64_t LinearProblem::vector_bytes() const {
  // Conjugate gradients: b, x, r, p, z, A p, the result, and three while norms are taken; u,
  // wlin(D), the sum over examples: in float64, since a solve in float32 ends earlier. A direction
  // and a gradient. If iterates are kept: those of two solves, and the last one twice on its way.
  const std::int64_t scalar = stream_.network().weights().flat.element_size();
  const std::int64_t wide = options_.iterates ? 17 : 13;
  const std::int64_t vectors = stream_.columns() * (wide * 8 + 2 * scalar);
  const std::int64_t rows = 6 * examples() * classes() * 8;  // logits, r, J u, right-hand sides
  return vectors + rows;
}

std::int64_t LinearProblem::memory_beside_vectors() const {
  return std::max(memory() - vector_bytes(), memory() / 2);
}

std::int64_t LinearProblem::fixed_bytes() const {
  const std::int64_t sampled = sample_bytes(sample_size());
  return vector_bytes() + std::max(sampled, sampled / 4 + sample_bytes(largest_preconditioner()));
}

bool LinearProblem::alike(const LinearModel& model) const {
  return is_identity(loss_, model.curvature);
}

LinearProblem::Positions LinearProblem::drawn(std::int64_t size) const {
  Positions order = RandomStream(1, "preconditioner").permutation(examples());
  order.resize(static_cast<std::size_t>(size));
  return order;
}

LinearProblem::Positions LinearProblem::most_curved(std::int64_t size,
                                                    const LinearModel& model) const {
  // Another processor may round otherwise, and all have to choose the same.
  const at::Tensor order = most_curved_first(
      stream_.as_the_first_process_says(curvature_trace(logits(), loss_, model.curvature)));
  return {order.data_ptr<std::int64_t>(), order.data_ptr<std::int64_t>() + size};
}

LinearProblem::Sample LinearProblem::sampled_kernel(const Positions& examples,
                                                    std::int64_t memory) const {
  Sample sample{
      .examples = examples, .theta = {}, .logits = stream_.logits(examples), .displaced = {}};
  const auto rows = static_cast<std::int64_t>(examples.size()) * classes();
  KernelOptions options;
  options.memory = memory - rows * rows * 8;  // the sum over processes
  options.progress = [this](double share) { report("kernel of a sample", share); };
  sample.theta = kernel_of_examples(stream_, examples, options);
  return sample;
}

const LinearProblem::Sample& LinearProblem::sample() const {
  if (!sample_) {
    sample_ = sampled_kernel(drawn(sample_size()), memory());
    sample_->displaced = stream_.jvp(sample_->examples, displacement_);
  }
  return *sample_;
}

bool LinearProblem::needs_own_kernel(const LinearModel& model, std::int64_t preconditioner) const {
  return preconditioner > (alike(model) ? sample_size() : 0);
}

const LinearProblem::Sample& LinearProblem::representatives(std::int64_t size,
                                                            const LinearModel& model) const {
  if (!needs_own_kernel(model, size)) return sample();
  const Positions wanted = alike(model) ? drawn(size) : most_curved(size, model);
  const bool known = representatives_ && representatives_->examples.size() >= wanted.size() &&
                     std::equal(wanted.begin(), wanted.end(), representatives_->examples.begin());
  if (!known) {
    representatives_.reset();
    representatives_ = sampled_kernel(wanted, memory_beside_vectors());
  }
  return *representatives_;
}

SampledProblem LinearProblem::sampled(const LinearModel& model, const SampledSolve& solve) const {
  const Sample& own = sample();
  at::Tensor right = residuals(own.logits, chosen(labels_, own.examples), loss_);
  if (model.displaced && solve.what == SolvedFor::minimum) {
    right = right - curvature_product(own.logits, own.displaced, loss_, model.curvature);
  }
  const bool moved = model.displaced && solve.what != SolvedFor::direction;
  return {.theta = own.theta,
          .logits = own.logits,
          .loss = loss_,
          .curvature = model.curvature,
          .right_side = right,
          .displaced = moved ? own.displaced : at::Tensor(),
          .displacement_norm = moved ? displacement_.norm().item<double>() : 0,
          .solve = solve,
          .decay = model.decay,
          .error_tolerance = options_.error_tolerance,
          .relative_tolerance = options_.relative_tolerance,
          .max_iterations = options_.max_iterations};
}

std::int64_t LinearProblem::preconditioner_size(const LinearModel& model,
                                                std::int64_t examples) const {
  if (options_.preconditioner) return std::min(*options_.preconditioner, examples);
  const std::string key =
      text(curvature_name(model.curvature), " ", model.decay, " ", model.displaced);
  const auto known = preconditioner_sizes_.find(key);
  if (known != preconditioner_sizes_.end()) return known->second;
  // Of the two solves the one for δ takes longer: it begins at zero and has to come nearer.
  const SampledProblem problem =
      sampled(model, {.what = SolvedFor::direction, .cohort = (sample_size() + 19) / 20});
  const double forward = stream_.network().forward_flops();
  std::int64_t best = 0;
  double least = 0;
  for (const std::int64_t part : {0, 8, 4, 2, 1}) {
    const std::int64_t size = part == 0 ? 0 : largest_preconditioner() / part;
    // In forward passes, for one of two solves: a product over all, a tangent and a backward pass
    // over the sample in each iteration; its kernel.
    const double work = estimate_iterations(problem, examples, size).expected *
                            (stream_.passes_of_product() * static_cast<double>(examples) +
                             (stream_.passes_of_product() + 1) * static_cast<double>(size)) +
                        (needs_own_kernel(model, size) ? kernel_flops(size) / forward / 2 : 0);
    if (part == 0 || work < least) {
      least = work;
      best = size;
    }
  }
  best = static_cast<std::int64_t>(as_the_first_process_says(static_cast<double>(best)));
  preconditioner_sizes_[key] = best;
  return best;
}

std::unique_ptr<LinearOperator> LinearProblem::preconditioner(const Positions& examples,
                                                              const LinearModel& model,
                                                              SolveReport& report) const {
  report.preconditioner = 0;
  const std::int64_t size = preconditioner_size(model, static_cast<std::int64_t>(examples.size()));
  // The sample counts also where it only said that no preconditioner is worth its while.
  const bool own_kernel = needs_own_kernel(model, size);
  if (!options_.preconditioner || (size > 0 && !own_kernel)) {
    count_once(Shared::sample, sample_flops(sample_size()));
  }
  if (own_kernel) count_once(Shared::representatives, sample_flops(size));
  if (size == 0) return nullptr;
  // Of these, what belongs to this part: the cohort must not be in what is made without it.
  const Sample& known = representatives(size, model);
  const auto wanted = static_cast<std::size_t>(size);
  const std::set<std::int64_t> part(examples.begin(), examples.end());
  Positions places, own;
  for (std::size_t i = 0; i < known.examples.size() && own.size() < wanted; ++i) {
    if (!part.contains(known.examples[i])) continue;
    places.push_back(static_cast<std::int64_t>(i));
    own.push_back(known.examples[i]);
  }
  if (own.empty()) return nullptr;
  const double ridge = model.decay * static_cast<double>(examples.size());
  const double weight =
      weight_of_chosen(loss_, model.curvature, static_cast<std::int64_t>(examples.size()),
                       static_cast<std::int64_t>(own.size()));
  const Cholesky factor = Cholesky::factorize(woodbury_matrix(
      kernel_of(known.theta, places, classes()),
      curvature_root(chosen(known.logits, places), loss_, model.curvature), ridge, weight));
  const at::Tensor succeeded = stream_.as_the_first_process_says(
      at::tensor({factor.summary().succeeded ? 1.0 : 0.0}, at::kDouble));
  if (succeeded.item<double>() == 0) return nullptr;
  if (!factor.summary().succeeded) {
    fail("preconditioner: factorised by the first process, but not here: ",
         factor.summary().brief());
  }
  report.preconditioner = static_cast<std::int64_t>(own.size());
  return std::make_unique<WoodburyPreconditioner>(
      stream_, own, logit_curvature(loss_, model.curvature), factor, ridge);
}

}  // namespace pumice
