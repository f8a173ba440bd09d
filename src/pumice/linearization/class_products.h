// The innermost loop of class sharing: a handful of long dot products.
#pragma once

#include <cstdint>

namespace pumice {

// out[s·out_ld + s'] += Σ_t Σ_o left[t·left_ld + s·left_stride + o] · right[t·right_ld +
// s'·right_stride + o] for s, s' < seeds, t < positions, o < length. Uses AVX2 where the processor
// has it.
void add_class_products(std::int64_t seeds, std::int64_t positions, std::int64_t length,
                        const float* left, std::int64_t left_ld, std::int64_t left_stride,
                        const float* right, std::int64_t right_ld, std::int64_t right_stride,
                        float* out, std::int64_t out_ld);
void add_class_products(std::int64_t seeds, std::int64_t positions, std::int64_t length,
                        const double* left, std::int64_t left_ld, std::int64_t left_stride,
                        const double* right, std::int64_t right_ld, std::int64_t right_stride,
                        double* out, std::int64_t out_ld);

}  // namespace pumice
