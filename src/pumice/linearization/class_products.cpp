#include "pumice/linearization/class_products.h"

#include <algorithm>
#include <cstring>

namespace pumice {
namespace {

template <typename Scalar>
struct Operands {
  std::int64_t left_seeds, right_seeds, positions, length;
  const Scalar* left;
  std::int64_t left_ld, left_stride;
  const Scalar* right;
  std::int64_t right_ld, right_stride;
  Scalar* out;
  std::int64_t out_ld;
};

// `Height` rows of `left` against `Width` rows of `right` at a time: each loaded vector is used
// several times, and all sums stay in registers (which is why the loops over them must be unrolled:
// seven times slower otherwise).
template <typename Scalar, std::int64_t RegisterBytes, int Height, int Width>
[[gnu::always_inline]] inline void rows_against(const Operands<Scalar>& all, std::int64_t s,
                                                std::int64_t first) {
  constexpr std::int64_t lanes = RegisterBytes / static_cast<std::int64_t>(sizeof(Scalar));
  using Vector [[gnu::vector_size(RegisterBytes)]] = Scalar;
  Vector sums[Height][Width] = {};
  Scalar rest[Height][Width] = {};
  // What is left at the end of a row is read as one more vector that overlaps the one before;
  // `fresh` is 1 for what was not counted yet.
  const std::int64_t whole = all.length / lanes * lanes;
  const bool overlaps = whole > 0 && whole < all.length;
  Vector fresh;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    fresh[lane] = lane >= lanes - (all.length - whole) ? 1 : 0;
  }
  for (std::int64_t t = 0; t < all.positions; ++t) {
    const Scalar* left = all.left + t * all.left_ld + s * all.left_stride;
    const Scalar* right = all.right + t * all.right_ld + first * all.right_stride;
    const auto add = [&](std::int64_t o, const Vector* mask) __attribute__((always_inline)) {
      Vector from_left[Height];
#pragma GCC unroll 8
      for (int h = 0; h < Height; ++h) {
        std::memcpy(&from_left[h], left + h * all.left_stride + o, sizeof(Vector));
        if (mask) from_left[h] *= *mask;
      }
#pragma GCC unroll 8
      for (int w = 0; w < Width; ++w) {
        Vector from_right;
        std::memcpy(&from_right, right + w * all.right_stride + o, sizeof(Vector));
#pragma GCC unroll 8
        for (int h = 0; h < Height; ++h) sums[h][w] += from_left[h] * from_right;
      }
    };
    for (std::int64_t o = 0; o < whole; o += lanes) add(o, nullptr);
    if (overlaps) add(all.length - lanes, &fresh);
    for (std::int64_t o = overlaps ? all.length : whole; o < all.length; ++o) {
      for (int h = 0; h < Height; ++h) {
        for (int w = 0; w < Width; ++w) {
          rest[h][w] += left[h * all.left_stride + o] * right[w * all.right_stride + o];
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int h = 0; h < Height; ++h) {
#pragma GCC unroll 8
    for (int w = 0; w < Width; ++w) {
      Scalar total = rest[h][w];
      for (std::int64_t lane = 0; lane < lanes; ++lane) total += sums[h][w][lane];
      all.out[(s + h) * all.out_ld + first + w] += total;
    }
  }
}

template <typename Scalar, std::int64_t RegisterBytes, int Height>
[[gnu::always_inline]] inline void rows_against_all(const Operands<Scalar>& all, std::int64_t s) {
  std::int64_t first = 0;
  for (; first + 5 <= all.right_seeds; first += 5) {
    rows_against<Scalar, RegisterBytes, Height, 5>(all, s, first);
  }
  for (; first + 2 <= all.right_seeds; first += 2) {
    rows_against<Scalar, RegisterBytes, Height, 2>(all, s, first);
  }
  for (; first < all.right_seeds; ++first) {
    rows_against<Scalar, RegisterBytes, Height, 1>(all, s, first);
  }
}

template <typename Scalar, std::int64_t RegisterBytes>
[[gnu::always_inline]] inline void all_rows(const Operands<Scalar>& all) {
  std::int64_t s = 0;
  if constexpr (RegisterBytes == 64) {  // twice as many registers
    for (; s + 5 <= all.left_seeds; s += 5) rows_against_all<Scalar, RegisterBytes, 5>(all, s);
  }
  for (; s + 2 <= all.left_seeds; s += 2) rows_against_all<Scalar, RegisterBytes, 2>(all, s);
  for (; s < all.left_seeds; ++s) rows_against_all<Scalar, RegisterBytes, 1>(all, s);
}

template <typename Scalar>
struct Transformation {
  std::int64_t outputs, columns, inner;
  const Scalar* weights;
  std::int64_t weights_ld;
  const Scalar* values;
  std::int64_t values_ld;
  Scalar* out;
  std::int64_t out_ld;
};

// `Rows` outputs × two registers of columns: all sums stay in registers.
template <typename Scalar, std::int64_t RegisterBytes, int Rows>
[[gnu::always_inline]] inline void transform_block(const Transformation<Scalar>& all,
                                                   std::int64_t first, std::int64_t column) {
  constexpr std::int64_t lanes = RegisterBytes / static_cast<std::int64_t>(sizeof(Scalar));
  using Vector [[gnu::vector_size(RegisterBytes)]] = Scalar;
  Vector low[Rows] = {}, high[Rows] = {};
  for (std::int64_t t = 0; t < all.inner; ++t) {
    const Scalar* values = all.values + t * all.values_ld + column;
    const Scalar* weights = all.weights + t * all.weights_ld + first;
    Vector from_low, from_high;
    std::memcpy(&from_low, values, sizeof from_low);
    std::memcpy(&from_high, values + lanes, sizeof from_high);
#pragma GCC unroll 12
    for (int row = 0; row < Rows; ++row) {
      low[row] += weights[row] * from_low;
      high[row] += weights[row] * from_high;
    }
  }
#pragma GCC unroll 12
  for (int row = 0; row < Rows; ++row) {
    Scalar* to = all.out + (first + row) * all.out_ld + column;
    std::memcpy(to, &low[row], sizeof low[row]);
    std::memcpy(to + lanes, &high[row], sizeof high[row]);
  }
}

template <typename Scalar, std::int64_t RegisterBytes>
[[gnu::always_inline]] inline void transform_columns(const Transformation<Scalar>& all,
                                                     std::int64_t column) {
  std::int64_t row = 0;
  if constexpr (RegisterBytes == 64) {  // twice as many registers
    for (; row + 12 <= all.outputs; row += 12) {
      transform_block<Scalar, RegisterBytes, 12>(all, row, column);
    }
    for (; row + 8 <= all.outputs; row += 8) {
      transform_block<Scalar, RegisterBytes, 8>(all, row, column);
    }
  }
  for (; row + 6 <= all.outputs; row += 6) {
    transform_block<Scalar, RegisterBytes, 6>(all, row, column);
  }
  for (; row + 4 <= all.outputs; row += 4) {
    transform_block<Scalar, RegisterBytes, 4>(all, row, column);
  }
  for (; row < all.outputs; ++row) transform_block<Scalar, RegisterBytes, 1>(all, row, column);
}

template <typename Scalar, std::int64_t RegisterBytes>
[[gnu::always_inline]] inline void transform_all(const Transformation<Scalar>& all) {
  constexpr std::int64_t step = 2 * RegisterBytes / static_cast<std::int64_t>(sizeof(Scalar));
  if (all.columns >= step) {
    for (std::int64_t column = 0; column + step < all.columns; column += step) {
      transform_columns<Scalar, RegisterBytes>(all, column);
    }
    // The last ones overlap those before, which get the same values again.
    transform_columns<Scalar, RegisterBytes>(all, all.columns - step);
    return;
  }
  for (std::int64_t row = 0; row < all.outputs; ++row) {
    for (std::int64_t column = 0; column < all.columns; ++column) {
      Scalar sum = 0;
      for (std::int64_t t = 0; t < all.inner; ++t) {
        sum += all.weights[t * all.weights_ld + row] * all.values[t * all.values_ld + column];
      }
      all.out[row * all.out_ld + column] = sum;
    }
  }
}

#if defined(__x86_64__)
// One copy of each loop for each width of register; which one runs is decided by the processor.
#define PUMICE_FOR_REGISTERS(name, instructions, bytes)                                    \
  [[gnu::target(instructions)]] void transform_##name(const Transformation<float>& all) {  \
    transform_all<float, bytes>(all);                                                      \
  }                                                                                        \
  [[gnu::target(instructions)]] void transform_##name(const Transformation<double>& all) { \
    transform_all<double, bytes>(all);                                                     \
  }                                                                                        \
  [[gnu::target(instructions)]] void all_rows_##name(const Operands<float>& all) {         \
    all_rows<float, bytes>(all);                                                           \
  }                                                                                        \
  [[gnu::target(instructions)]] void all_rows_##name(const Operands<double>& all) {        \
    all_rows<double, bytes>(all);                                                          \
  }
PUMICE_FOR_REGISTERS(avx2, "avx2,fma", 32)
PUMICE_FOR_REGISTERS(avx512, "avx512f,avx2,fma,prefer-vector-width=512", 64)
#undef PUMICE_FOR_REGISTERS
const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f");
#endif

template <typename Scalar>
void dispatch(const Operands<Scalar>& all) {
#if defined(__x86_64__)
  if (has_avx512) return all_rows_avx512(all);
  if (has_avx2) return all_rows_avx2(all);
#endif
  all_rows<Scalar, 32>(all);
}

template <typename Scalar>
void dispatch(const Transformation<Scalar>& all) {
#if defined(__x86_64__)
  if (has_avx512) return transform_avx512(all);
  if (has_avx2) return transform_avx2(all);
#endif
  transform_all<Scalar, 32>(all);
}

}  // namespace

void add_class_products(std::int64_t left_seeds, std::int64_t right_seeds, std::int64_t positions,
                        std::int64_t length, const float* left, std::int64_t left_ld,
                        std::int64_t left_stride, const float* right, std::int64_t right_ld,
                        std::int64_t right_stride, float* out, std::int64_t out_ld) {
  dispatch(Operands<float>{left_seeds, right_seeds, positions, length, left, left_ld, left_stride,
                           right, right_ld, right_stride, out, out_ld});
}

void add_class_products(std::int64_t left_seeds, std::int64_t right_seeds, std::int64_t positions,
                        std::int64_t length, const double* left, std::int64_t left_ld,
                        std::int64_t left_stride, const double* right, std::int64_t right_ld,
                        std::int64_t right_stride, double* out, std::int64_t out_ld) {
  dispatch(Operands<double>{left_seeds, right_seeds, positions, length, left, left_ld, left_stride,
                            right, right_ld, right_stride, out, out_ld});
}

void transform_positions(std::int64_t outputs, std::int64_t columns, std::int64_t inner,
                         const float* weights, std::int64_t weights_ld, const float* values,
                         std::int64_t values_ld, float* out, std::int64_t out_ld) {
  dispatch(Transformation<float>{outputs, columns, inner, weights, weights_ld, values, values_ld,
                                 out, out_ld});
}

void transform_positions(std::int64_t outputs, std::int64_t columns, std::int64_t inner,
                         const double* weights, std::int64_t weights_ld, const double* values,
                         std::int64_t values_ld, double* out, std::int64_t out_ld) {
  dispatch(Transformation<double>{outputs, columns, inner, weights, weights_ld, values, values_ld,
                                  out, out_ld});
}

}  // namespace pumice
