#include "pumice/linalg/blas.h"

#include <cblas.h>

namespace pumice {
namespace {

blasint narrow(std::int64_t value) {
  return static_cast<blasint>(value);
}

CBLAS_TRANSPOSE form(Transpose transpose) {
  return transpose == Transpose::yes ? CblasTrans : CblasNoTrans;
}

}  // namespace

void gemm(Transpose a_form, Transpose b_form, std::int64_t m, std::int64_t n, std::int64_t k,
          const float* a, std::int64_t a_ld, const float* b, std::int64_t b_ld, float beta,
          float* c, std::int64_t c_ld) {
  cblas_sgemm(CblasRowMajor, form(a_form), form(b_form), narrow(m), narrow(n), narrow(k), 1, a,
              narrow(a_ld), b, narrow(b_ld), beta, c, narrow(c_ld));
}

void gemm(Transpose a_form, Transpose b_form, std::int64_t m, std::int64_t n, std::int64_t k,
          const double* a, std::int64_t a_ld, const double* b, std::int64_t b_ld, double beta,
          double* c, std::int64_t c_ld) {
  cblas_dgemm(CblasRowMajor, form(a_form), form(b_form), narrow(m), narrow(n), narrow(k), 1, a,
              narrow(a_ld), b, narrow(b_ld), beta, c, narrow(c_ld));
}

void syrk(std::int64_t n, std::int64_t k, const float* a, std::int64_t a_ld, float beta, float* c,
          std::int64_t c_ld) {
  cblas_ssyrk(CblasRowMajor, CblasLower, CblasNoTrans, narrow(n), narrow(k), 1, a, narrow(a_ld),
              beta, c, narrow(c_ld));
}

void syrk(std::int64_t n, std::int64_t k, const double* a, std::int64_t a_ld, double beta,
          double* c, std::int64_t c_ld) {
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, narrow(n), narrow(k), 1, a, narrow(a_ld),
              beta, c, narrow(c_ld));
}

SerialBlas::SerialBlas() : threads_(openblas_get_num_threads()) {
  openblas_set_num_threads(1);
}
SerialBlas::~SerialBlas() {
  openblas_set_num_threads(threads_);
}

}  // namespace pumice
