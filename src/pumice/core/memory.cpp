#include "pumice/core/memory.h"

#include <cstdlib>  // defines __GLIBC__ where there is one
#include <limits>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace pumice {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);  // large blocks come from the heap, where they can be reused
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace pumice
