// Finds the loops that this machine can run. Each call asks the processor, which takes one instruction: a cached answer
// would be mutable state of the process.
#include "hmatrix/multiply/kernels.hpp"

#include <cstring>
#include <initializer_list>

namespace penstock::hmatrix {

Kernels plain_kernels() noexcept;
#ifdef PENSTOCK_X86_KERNELS
Kernels avx2_kernels() noexcept;
Kernels avx512_kernels() noexcept;
#endif

bool kernels_of(const char* kind, Kernels& found) noexcept {
    if (std::strcmp(kind, "plain") == 0) {
        found = plain_kernels();
        return true;
    }
#ifdef PENSTOCK_X86_KERNELS
    __builtin_cpu_init();
    if (std::strcmp(kind, "avx2") == 0 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found = avx2_kernels();
        return true;
    }
    if (std::strcmp(kind, "avx512") == 0 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        found = avx512_kernels();
        return true;
    }
#endif
    return false;
}

Kernels best_kernels() noexcept {
    Kernels found;
    for (const char* kind : {"avx512", "avx2", "plain"}) {
        if (kernels_of(kind, found)) break;
    }
    return found;
}

}  // namespace penstock::hmatrix
