// The two innermost loops of class sharing, for matrices that a BLAS is slow at: a product with a
// small inner dimension, and a handful of long dot products. Both use AVX-512 or
// AVX2 where the processor has it.
#pragma once

#include <cstdint>

namespace pumice {

// out[s·out_ld + s'] += Σ_t Σ_o left[t·left_ld + s·left_stride + o] · right[t·right_ld +
// s'·right_stride + o] for s < left_seeds, s' < right_seeds, t < positions, o < length.
void add_class_products(std::int64_t left_seeds, std::int64_t right_seeds, std::int64_t positions,
                        std::int64_t length, const float* left, std::int64_t left_ld,
                        std::int64_t left_stride, const float* right, std::int64_t right_ld,
                        std::int64_t right_stride, float* out, std::int64_t out_ld);
void add_class_products(std::int64_t left_seeds, std::int64_t right_seeds, std::int64_t positions,
                        std::int64_t length, const double* left, std::int64_t left_ld,
                        std::int64_t left_stride, const double* right, std::int64_t right_ld,
                        std::int64_t right_stride, double* out, std::int64_t out_ld);

// out[u·out_ld + n] = Σ_t weights[t·weights_ld + u] · values[t·values_ld + n] for u < outputs, n <
// columns, t < inner. At inner = 16 about twice as fast as sgemm.
void transform_positions(std::int64_t outputs, std::int64_t columns, std::int64_t inner,
                         const float* weights, std::int64_t weights_ld, const float* values,
                         std::int64_t values_ld, float* out, std::int64_t out_ld);
void transform_positions(std::int64_t outputs, std::int64_t columns, std::int64_t inner,
                         const double* weights, std::int64_t weights_ld, const double* values,
                         std::int64_t values_ld, double* out, std::int64_t out_ld);

}  // namespace pumice
