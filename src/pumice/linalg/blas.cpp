#include "pumice/linalg/blas.h"

#include <ATen/Parallel.h>
#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace pumice {
namespace {

blasint narrow(std::int64_t value) {
  return static_cast<blasint>(value);
}

CBLAS_TRANSPOSE form(Transpose transpose) {
  return transpose == Transpose::yes ? CblasTrans : CblasNoTrans;
}

// Rows and columns of C that one thread computes at a time: large enough for full speed, small
// enough for several tiles to each thread.
constexpr std::int64_t largest_tile = 384;
constexpr std::int64_t smallest_tile = 64;

std::int64_t tile_extent(std::int64_t extent) {
  const std::int64_t pieces = 3 * at::get_num_threads();
  return std::clamp((extent + pieces - 1) / pieces, smallest_tile, largest_tile);
}

struct Tile {
  std::int64_t row, rows, column, columns;
};

// Each thread takes the next tile when it is done with one, so tiles may differ in cost.
template <typename Work>
void on_all_threads(const std::vector<Tile>& tiles, double operations, const Work& work) {
  constexpr double worth_a_thread = 1e6;
  if (tiles.size() == 1 || operations < worth_a_thread || at::in_parallel_region()) {
    for (const Tile& tile : tiles) work(tile);
    return;
  }
  std::atomic<std::size_t> next{0};
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t thread = begin; thread < end; ++thread) {
      for (std::size_t i = next++; i < tiles.size(); i = next++) work(tiles[i]);
    }
  });
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

template <typename Scalar>
void spread_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Scalar* a, std::int64_t a_ld,
                 const Scalar* b, std::int64_t b_ld, Scalar beta, Scalar* c, std::int64_t c_ld) {
  const SerialBlas serial;
  std::vector<Tile> tiles;
  const std::int64_t rows = tile_extent(m), columns = tile_extent(n);
  for (std::int64_t row = 0; row < m; row += rows) {
    for (std::int64_t column = 0; column < n; column += columns) {
      tiles.push_back({row, std::min(rows, m - row), column, std::min(columns, n - column)});
    }
  }
  on_all_threads(tiles, static_cast<double>(m) * static_cast<double>(n * k), [&](const Tile& tile) {
    gemm(Transpose::no, Transpose::yes, tile.rows, tile.columns, k, a + tile.row * a_ld, a_ld,
         b + tile.column * b_ld, b_ld, beta, c + tile.row * c_ld + tile.column, c_ld);
  });
}

template <typename Scalar>
void spread_syrk(std::int64_t n, std::int64_t k, const Scalar* a, std::int64_t a_ld, Scalar beta,
                 Scalar* c, std::int64_t c_ld) {
  const SerialBlas serial;
  std::vector<Tile> tiles;
  const std::int64_t extent = tile_extent(n);
  for (std::int64_t column = 0; column < n; column += extent) {
    for (std::int64_t row = column; row < n; row += extent) {
      tiles.push_back({row, std::min(extent, n - row), column, std::min(extent, n - column)});
    }
  }
  on_all_threads(tiles, static_cast<double>(n) * static_cast<double>(n * k), [&](const Tile& tile) {
    Scalar* target = c + tile.row * c_ld + tile.column;
    if (tile.row == tile.column) {
      syrk(tile.rows, k, a + tile.row * a_ld, a_ld, beta, target, c_ld);
    } else {
      gemm(Transpose::no, Transpose::yes, tile.rows, tile.columns, k, a + tile.row * a_ld, a_ld,
           a + tile.column * a_ld, a_ld, beta, target, c_ld);
    }
  });
}

template void spread_gemm(std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t,
                          const float*, std::int64_t, float, float*, std::int64_t);
template void spread_gemm(std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t,
                          const double*, std::int64_t, double, double*, std::int64_t);
template void spread_syrk(std::int64_t, std::int64_t, const float*, std::int64_t, float, float*,
                          std::int64_t);
template void spread_syrk(std::int64_t, std::int64_t, const double*, std::int64_t, double, double*,
                          std::int64_t);

}  // namespace pumice
