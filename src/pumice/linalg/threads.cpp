#include "pumice/linalg/threads.h"

#include <ATen/Parallel.h>
#include <cblas.h>
#include <sched.h>

#include <thread>

#include "pumice/core/error.h"

namespace pumice {

int available_cores() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::thread::hardware_concurrency());
}

void set_threads(int threads) {
  if (threads < 1 || threads > 1024) fail("threads: ", threads, ", must be in 1 … 1024");
  at::set_num_threads(threads);
  openblas_set_num_threads(threads);
}

}  // namespace pumice
