// What a contraction will cost on this machine, from rates measured on it.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "pumice/linearization/contraction.h"

namespace pumice {

// FLOP/s, with the current number of threads.
struct MachineRates {
  double product = 0;         // large matrix product (gemm)
  double symmetric = 0;       // symmetric update (syrk), counting half of the products
  double thin_product = 0;    // transform_positions with inner dimension `thin_inner`
  double row_forming = 0;     // products as in form_rows, unfolding not counted
  double class_products = 0;  // the dot products of class sharing
  double unfolding = 0;       // values written a second

  static constexpr std::int64_t thin_inner = 16;

  // A product with a small inner dimension: product·t/(t + t₀), t₀ from the rate that was measured.
  double product_with_inner(std::int64_t inner) const;
};

// Measures for about half a second; later calls with the same precision and number of threads
// remember.
MachineRates measured_rates(at::ScalarType type);

// Seconds for `pairs` pairs of examples with S seeds each, and for the rows of `examples` examples
// where the contraction needs them.
double forecast_seconds(const Layer& layer, Contraction contraction, double pairs, double examples,
                        std::int64_t seeds, const MachineRates& rates);

// The cheapest contraction that is exact for this layer.
Contraction cheapest_contraction(const Layer& layer, double pairs, double examples,
                                 std::int64_t seeds, const MachineRates& rates);

}  // namespace pumice
