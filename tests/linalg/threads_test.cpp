#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "pumice/core/error.h"
#include "pumice/linalg/threads.h"

namespace pumice {
namespace {

TEST(Threads, AreSetForLibTorch) {
  set_threads(2);
  EXPECT_EQ(at::get_num_threads(), 2);
  set_threads(1);
  EXPECT_EQ(at::get_num_threads(), 1);
}

TEST(Threads, CountsOutOfRangeAreErrors) {
  EXPECT_THROW(set_threads(0), Error);
  EXPECT_THROW(set_threads(5000), Error);
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace pumice
