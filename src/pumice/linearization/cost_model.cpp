#include "pumice/linearization/cost_model.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "pumice/linalg/blas.h"
#include "pumice/linearization/class_products.h"

namespace pumice {
namespace {

// The best of a few repetitions: a rate is what the machine can do, and others may be using it.
template <typename Work>
double best_rate(double operations, const Work& work) {
  using Clock = std::chrono::steady_clock;
  work();  // warms caches and threads
  double best = 0;
  double spent = 0;
  for (int repetition = 0; repetition < 3 || (repetition < 50 && spent < 0.1); ++repetition) {
    const auto start = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, operations / std::max(seconds, 1e-9));
    spent += seconds;
  }
  return best;
}

// Runs `work(i)` for `count` items, spread over the threads, with products on one thread each.
template <typename Work>
void spread(std::int64_t count, const Work& work) {
  SerialBlas serial;
  at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) work(i);
  });
}

template <typename Scalar>
MachineRates measure(at::ScalarType type) {
  MachineRates rates;
  const std::int64_t large = 768;
  const at::Tensor left = at::ones({large, large}, type);
  const at::Tensor right = at::ones({large, large}, type);
  at::Tensor out = at::zeros({large, large}, type);
  Scalar* a = left.data_ptr<Scalar>();
  Scalar* b = right.data_ptr<Scalar>();
  Scalar* c = out.data_ptr<Scalar>();
  const double cube = static_cast<double>(large * large * large);
  rates.product = best_rate(
      2 * cube, [&] { spread_gemm<Scalar>(large, large, large, a, large, b, large, 0, c, large); });
  rates.symmetric =
      best_rate(cube, [&] { spread_syrk<Scalar>(large, large, a, large, 0, c, large); });

  // Enough small pieces for each thread that starting the threads does not count.
  const std::int64_t items = 16 * at::get_num_threads();
  const std::int64_t slots = at::get_num_threads() + 1;
  const std::int64_t share = large * large / slots;  // of `c`; neighbouring items write elsewhere
  const std::int64_t inner = MachineRates::thin_inner;
  const std::int64_t thin_rows = 64;
  const std::int64_t thin_columns = std::min<std::int64_t>(large, share / thin_rows);
  rates.thin_product =
      best_rate(static_cast<double>(2 * items * thin_rows * thin_columns * inner), [&] {
        spread(items, [&](std::int64_t i) {
          transform_positions(thin_rows, thin_columns, inner, a, large,
                              b + i % (large / inner) * inner * large, large, c + i % slots * share,
                              thin_columns);
        });
      });
  const std::int64_t form_rows = 256, form_columns = std::min<std::int64_t>(96, share / 256);
  rates.row_forming =
      best_rate(static_cast<double>(2 * items * form_rows * form_columns * 64), [&] {
        spread(items, [&](std::int64_t i) {
          gemm(Transpose::yes, Transpose::no, form_rows, form_columns, 64, a, large, b, large,
               Scalar{0}, c + i % slots * share, form_columns);
        });
      });
  // Every pair reads other examples than the one before: from the second-level cache at best.
  const std::int64_t seeds = 5, positions = 16, length = 192;
  const std::int64_t values_each = seeds * positions * length;
  const std::int64_t examples = large * large / values_each;
  rates.class_products =
      best_rate(static_cast<double>(2 * items * 16 * seeds * seeds * positions * length), [&] {
        spread(items * 16, [&](std::int64_t i) {
          add_class_products(seeds, seeds, positions, length, a, seeds * length, length,
                             b + i % examples * values_each, seeds * length, length,
                             c + i % slots * share, seeds);
        });
      });
  const Unfolding unfolding{
      .extent = {1, 8, 8}, .kernel = {1, 3, 3}, .padding = {0, 1, 1}, .channels = 96};
  const std::int64_t values = unfolding.positions() * unfolding.columns();
  at::Tensor patches = at::empty({items, values}, type);
  rates.unfolding = best_rate(static_cast<double>(items * values), [&] {
    spread(items, [&](std::int64_t i) {
      unfold(unfolding, a, 0, whole_patch(unfolding), patches.data_ptr<Scalar>() + i * values);
    });
  });
  return rates;
}

}  // namespace

double MachineRates::product_with_inner(std::int64_t inner) const {
  const double at_thin = std::min(thin_product, 0.99 * product);
  const double half = static_cast<double>(thin_inner) * (product / at_thin - 1);
  const auto size = static_cast<double>(inner);
  return product * size / (size + half);
}

MachineRates measured_rates(at::ScalarType type) {
  static std::mutex mutex;
  static std::map<std::pair<at::ScalarType, int>, MachineRates> known;
  const std::lock_guard lock(mutex);
  const auto key = std::make_pair(type, at::get_num_threads());
  if (const auto found = known.find(key); found != known.end()) return found->second;
  MachineRates rates;
  AT_DISPATCH_FLOATING_TYPES(type, "measured_rates", [&] { rates = measure<scalar_t>(type); });
  known.emplace(key, rates);
  return rates;
}

double forecast_seconds(const Layer& layer, Contraction contraction, double pairs, double examples,
                        std::int64_t seeds, const MachineRates& rates) {
  const auto t = static_cast<double>(layer.positions);
  const auto k = static_cast<double>(layer.columns);
  const auto s = static_cast<double>(seeds);
  const auto o = static_cast<double>(layer.outputs / layer.groups);
  const auto groups = static_cast<double>(layer.groups);
  const double patches = examples * groups * t * k / rates.unfolding;
  switch (contraction) {
    case Contraction::explicit_rows:
      return contraction_flops(layer, contraction, pairs, seeds) / rates.symmetric +
             row_flops(layer, examples, seeds) / rates.row_forming + patches;
    case Contraction::hadamard:
      return 2 * pairs * groups *
                 (t * t * k / rates.product +
                  s * s * t * t * o / rates.product_with_inner(layer.outputs / layer.groups)) +
             pairs * groups * s * s * t * t / rates.unfolding + patches;
    case Contraction::class_sharing:
      return pairs * groups *
                 (sharing_product_flops(layer) / rates.product +
                  tap_sums(layer) / rates.unfolding) +
             2 * pairs * groups *
                 (s * t * t * o / rates.product_with_inner(layer.positions) +
                  s * s * t * o / rates.class_products) +
             (tap_sums(layer) > 0 ? 0 : patches);
    case Contraction::linear_tail:
      return forecast_seconds(pooled_layer(layer), Contraction::hadamard, pairs, examples, seeds,
                              rates);
  }
  return 0;
}

Contraction cheapest_contraction(const Layer& layer, double pairs, double examples,
                                 std::int64_t seeds, const MachineRates& rates) {
  if (layer.pooled_linearly) return Contraction::linear_tail;
  Contraction best = Contraction::explicit_rows;
  double least = forecast_seconds(layer, best, pairs, examples, seeds, rates);
  for (const Contraction other : {Contraction::hadamard, Contraction::class_sharing}) {
    const double seconds = forecast_seconds(layer, other, pairs, examples, seeds, rates);
    if (seconds < least) {
      least = seconds;
      best = other;
    }
  }
  return best;
}

}  // namespace pumice
