#include "pumice/linearization/class_products.h"

#include <algorithm>
#include <cstring>

namespace pumice {
namespace {

template <typename Scalar>
struct Operands {
  std::int64_t seeds, positions, length;
  const Scalar* left;
  std::int64_t left_ld, left_stride;
  const Scalar* right;
  std::int64_t right_ld, right_stride;
  Scalar* out;
  std::int64_t out_ld;
};

constexpr std::int64_t register_bytes = 32;

// One row of `left` against `Width` rows of `right` at a time: each loaded vector of `left` is used
// Width times.
template <typename Scalar, int Width>
[[gnu::always_inline]] inline void row_against(const Operands<Scalar>& all, std::int64_t s,
                                               std::int64_t first) {
  constexpr std::int64_t lanes = register_bytes / static_cast<std::int64_t>(sizeof(Scalar));
  using Vector [[gnu::vector_size(register_bytes)]] = Scalar;
  Vector sums[Width] = {};
  Scalar rest[Width] = {};
  for (std::int64_t t = 0; t < all.positions; ++t) {
    const Scalar* left = all.left + t * all.left_ld + s * all.left_stride;
    const Scalar* right = all.right + t * all.right_ld + first * all.right_stride;
    std::int64_t o = 0;
    for (; o + lanes <= all.length; o += lanes) {
      Vector from_left;
      std::memcpy(&from_left, left + o, sizeof from_left);
      for (int w = 0; w < Width; ++w) {
        Vector from_right;
        std::memcpy(&from_right, right + w * all.right_stride + o, sizeof from_right);
        sums[w] += from_left * from_right;
      }
    }
    for (; o < all.length; ++o) {
      for (int w = 0; w < Width; ++w) rest[w] += left[o] * right[w * all.right_stride + o];
    }
  }
  for (int w = 0; w < Width; ++w) {
    Scalar total = rest[w];
    for (std::int64_t lane = 0; lane < lanes; ++lane) total += sums[w][lane];
    all.out[s * all.out_ld + first + w] += total;
  }
}

template <typename Scalar>
[[gnu::always_inline]] inline void all_rows(const Operands<Scalar>& all) {
  for (std::int64_t s = 0; s < all.seeds; ++s) {
    std::int64_t first = 0;
    for (; first + 5 <= all.seeds; first += 5) row_against<Scalar, 5>(all, s, first);
    for (; first + 2 <= all.seeds; first += 2) row_against<Scalar, 2>(all, s, first);
    for (; first < all.seeds; ++first) row_against<Scalar, 1>(all, s, first);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void all_rows_avx2(const Operands<float>& all) {
  all_rows(all);
}
[[gnu::target("avx2,fma")]] void all_rows_avx2(const Operands<double>& all) {
  all_rows(all);
}
const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif

template <typename Scalar>
void dispatch(const Operands<Scalar>& all) {
#if defined(__x86_64__)
  if (has_avx2) return all_rows_avx2(all);
#endif
  all_rows(all);
}

}  // namespace

void add_class_products(std::int64_t seeds, std::int64_t positions, std::int64_t length,
                        const float* left, std::int64_t left_ld, std::int64_t left_stride,
                        const float* right, std::int64_t right_ld, std::int64_t right_stride,
                        float* out, std::int64_t out_ld) {
  dispatch(Operands<float>{seeds, positions, length, left, left_ld, left_stride, right, right_ld,
                           right_stride, out, out_ld});
}

void add_class_products(std::int64_t seeds, std::int64_t positions, std::int64_t length,
                        const double* left, std::int64_t left_ld, std::int64_t left_stride,
                        const double* right, std::int64_t right_ld, std::int64_t right_stride,
                        double* out, std::int64_t out_ld) {
  dispatch(Operands<double>{seeds, positions, length, left, left_ld, left_stride, right, right_ld,
                            right_stride, out, out_ld});
}

}  // namespace pumice
