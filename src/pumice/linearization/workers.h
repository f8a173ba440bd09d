// Each thread takes its own examples through all layers: nobody waits at the end of every small
// operation.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

namespace pumice {

// As many as there are threads, but each with two examples at least: LibTorch's convolutions of one
// image are slow.
std::int64_t workers_for(std::int64_t examples);

// The part of `examples` that is a worker's own.
struct WorkerShare {
  std::int64_t worker = 0, begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

// work(share) for each worker, all at once, each on one thread; on this thread with all its helpers
// if there is one worker. What one throws is thrown here. Gradient mode and other settings of the
// calling thread are not the workers'.
void for_each_worker(std::int64_t examples, std::int64_t workers,
                     const std::function<void(const WorkerShare&)>& work);

}  // namespace pumice
