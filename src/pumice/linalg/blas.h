// The two matrix products that the kernel is made of, in both precisions, on plain memory.
// Matrices are row by row (C order): element (i, j) of a matrix with leading dimension `ld` is at
// i·ld + j.
#pragma once

#include <cstdint>

namespace pumice {

enum class Transpose { no, yes };

// C (m×n) ← op(A)·op(B) + beta·C, where op(A) is m×k and op(B) k×n.
void gemm(Transpose a_form, Transpose b_form, std::int64_t m, std::int64_t n, std::int64_t k,
          const float* a, std::int64_t a_ld, const float* b, std::int64_t b_ld, float beta,
          float* c, std::int64_t c_ld);
void gemm(Transpose a_form, Transpose b_form, std::int64_t m, std::int64_t n, std::int64_t k,
          const double* a, std::int64_t a_ld, const double* b, std::int64_t b_ld, double beta,
          double* c, std::int64_t c_ld);

// Lower triangle of C (n×n) ← A·Aᵀ + beta·C with A n×k: half the work of gemm. The upper triangle
// is left as it is.
void syrk(std::int64_t n, std::int64_t k, const float* a, std::int64_t a_ld, float beta, float* c,
          std::int64_t c_ld);
void syrk(std::int64_t n, std::int64_t k, const double* a, std::int64_t a_ld, double beta,
          double* c, std::int64_t c_ld);

// While it lives, each product runs on the thread that calls it: for many small products, one
// thread each, inside at::parallel_for. Not to be nested.
class SerialBlas {
 public:
  SerialBlas();
  ~SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;

 private:
  int threads_;
};

}  // namespace pumice
