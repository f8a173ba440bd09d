// OpenBLAS chooses its inner loops by the name of the processor. A version that is older than the
// processor does not know the name and falls back to loops from 2004 (SSE3): 64 instead of 280
// GFLOP/s on an Emerald Rapids with OpenBLAS 0.3.21.
#pragma once

#include <optional>
#include <string>

namespace pumice {

// What OpenBLAS uses now: "Haswell", "Zen", "Prescott" …
std::string blas_kernels();

// The value for OPENBLAS_CORETYPE that suits the instructions of this processor, if OpenBLAS has
// fallen back; none if its choice is fine or OPENBLAS_CORETYPE is set already.
std::optional<std::string> better_blas_kernels();

// OpenBLAS reads the variable while it is loaded, before main. If there is a better choice, sets it
// and starts the program anew in place of this process, with the same arguments; otherwise, or if
// that is impossible, returns and changes nothing. Call first thing in main.
void restart_with_better_blas_kernels(char** arguments);

}  // namespace pumice
