// The two matrix products that the kernel is made of, in both precisions, on plain memory. Matrices
// are row by row (C order): element (i, j) of a matrix with leading dimension `ld` is at i·ld + j.
//
// OpenBLAS and LibTorch each keep threads of their own, and each lets them spin for a while after
// work. Using both in turn costs half the machine. So products here run on the thread that calls
// them while a SerialBlas lives, and the spread_ forms cut the work into pieces for LibTorch's
// threads.
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

// While one lives, each product runs on the thread that calls it. May be nested, on one thread.
class SerialBlas {
 public:
  SerialBlas();
  ~SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;

 private:
  int threads_;
};

// A·Bᵀ + beta·C on all of LibTorch's threads, A m×k, B n×k; and the lower triangle of A·Aᵀ +
// beta·C, where in addition whatever lies above the diagonal of a tile may be overwritten. Same
// result for the same number of threads.
template <typename Scalar>
void spread_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Scalar* a, std::int64_t a_ld,
                 const Scalar* b, std::int64_t b_ld, Scalar beta, Scalar* c, std::int64_t c_ld);
template <typename Scalar>
void spread_syrk(std::int64_t n, std::int64_t k, const Scalar* a, std::int64_t a_ld, Scalar beta,
                 Scalar* c, std::int64_t c_ld);

}  // namespace pumice
