#include "pumice/linalg/blas.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "pumice/linalg/threads.h"

namespace pumice {
namespace {

TEST(Blas, SpreadProductsEqualTheWholeOnesForAnyNumberOfThreads) {
  torch::manual_seed(1);
  const at::Tensor left = torch::randn({515, 70}, at::kDouble);
  const at::Tensor right = torch::randn({301, 70}, at::kDouble);
  const at::Tensor start = torch::randn({515, 301}, at::kDouble);
  const at::Tensor square = torch::randn({515, 515}, at::kDouble);
  for (const int threads : {3, 2, 1}) {
    set_threads(threads);
    at::Tensor product = start.clone();
    spread_gemm<double>(515, 301, 70, left.data_ptr<double>(), 70, right.data_ptr<double>(), 70, 2,
                        product.data_ptr<double>(), 301);
    EXPECT_TRUE(torch::allclose(product, left.mm(right.t()) + 2 * start, 1e-10)) << threads;
    at::Tensor gram = square.clone();
    spread_syrk<double>(515, 70, left.data_ptr<double>(), 70, 1, gram.data_ptr<double>(), 515);
    EXPECT_TRUE(torch::allclose(gram.tril(), (left.mm(left.t()) + square).tril(), 1e-10))
        << threads;
  }
}

TEST(Blas, ALargeProductReallyUsesSeveralThreads) {
  // Compiled without OpenMP, at::parallel_for is one thread in disguise.
  set_threads(2);
  std::atomic<int> together{0}, most{0};
  at::parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    const int now = ++together;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    for (int i = 0; i < 2000 && most < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    --together;
  });
  EXPECT_EQ(most, 2);
  set_threads(1);
}

}  // namespace
}  // namespace pumice
