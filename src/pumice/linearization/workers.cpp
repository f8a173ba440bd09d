#include "pumice/linearization/workers.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "pumice/linalg/blas.h"

namespace pumice {

std::int64_t workers_for(std::int64_t examples) {
  return std::clamp<std::int64_t>(examples / 2, 1, at::get_num_threads());
}

void for_each_worker(std::int64_t examples, std::int64_t workers,
                     const std::function<void(const WorkerShare&)>& work) {
  const auto share = [&](std::int64_t worker) {
    return WorkerShare{.worker = worker,
                       .begin = examples * worker / workers,
                       .end = examples * (worker + 1) / workers};
  };
  if (workers == 1) return work(share(0));
  SerialBlas serial;
  at::parallel_for(0, workers, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t worker = first; worker < last; ++worker) work(share(worker));
  });
}

}  // namespace pumice
