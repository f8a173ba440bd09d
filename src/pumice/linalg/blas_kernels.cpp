#include "pumice/linalg/blas_kernels.h"

#include <unistd.h>

#include <cstdlib>

// In OpenBLAS's library; its header declares it in later versions only.
extern "C" char* openblas_get_corename(void);

namespace pumice {
namespace {

constexpr const char* variable = "OPENBLAS_CORETYPE";

}  // namespace

std::string blas_kernels() {
  return openblas_get_corename();
}

std::optional<std::string> better_blas_kernels() {
  if (std::getenv(variable)) return std::nullopt;
#if defined(__x86_64__)
  const std::string now = blas_kernels();
  if (now != "Prescott" && now != "Core2" && now != "Generic") return std::nullopt;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return std::nullopt;
}

void restart_with_better_blas_kernels(char** arguments) {
  const std::optional<std::string> better = better_blas_kernels();
  if (!better || ::setenv(variable, better->c_str(), 1) != 0) return;
  ::execv("/proc/self/exe", arguments);
  ::unsetenv(variable);  // still here: go on as we are
}

}  // namespace pumice
