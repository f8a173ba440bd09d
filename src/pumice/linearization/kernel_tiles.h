// The dense kernel by several processes: each computes some of its rows.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "pumice/linearization/example_stream.h"

namespace pumice {

// A matrix of every process into the places that the first one has for them, by process; the others
// give none (parallel/process_group.h).
using GatherTiles =
    std::function<void(const at::Tensor& own, const std::vector<at::Tensor>& places)>;

// Θ is symmetric, so that its lower triangle is enough. Cuts at N·√(k/parts) give every part of the
// rows, as far as the diagonal, the same share of it: parts + 1 positions, from 0 to N. With fewer
// examples than parts some have none.
std::vector<std::int64_t> triangle_cuts(std::int64_t examples, std::int64_t parts);

// The rows of the examples begin … end−1 as far as the diagonal: (end−begin)·c × end·c, float64.
// What is left of the diagonal block is a rectangular kernel, the block itself a symmetric one; the
// signals of its examples are computed for both.
Kernel kernel_rows(const ExampleStream& stream, std::int64_t begin, std::int64_t end,
                   const KernelOptions& options);

// Θ over all examples of the stream. The first process gets it whole, the others an undefined
// tensor: 8·(N·c)² bytes are needed once. The summary is that of this process's rows. Sent: each
// process's rows, together half of the kernel.
Kernel tiled_kernel(const ExampleStream& stream, const Shard& shard, const GatherTiles& gather,
                    const KernelOptions& options);

}  // namespace pumice
