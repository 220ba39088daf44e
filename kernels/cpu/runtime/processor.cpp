#include "runtime/processor.h"

#if defined(_WIN32)
#include <windows.h>
#endif

namespace gpuens {

bool supported(std::string_view level) {
    if (level.empty()) return true;
#if defined(_WIN32)
    if (level == "v3") return IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE);
    if (level == "v4") return IsProcessorFeaturePresent(PF_AVX512F_INSTRUCTIONS_AVAILABLE);
    return level == "v2" && IsProcessorFeaturePresent(PF_SSE4_2_INSTRUCTIONS_AVAILABLE);
#elif defined(__x86_64__)
    // feature by feature: older compilers do not know the levels' names
    __builtin_cpu_init();
    bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
    return level == "v2" ? v2 : level == "v3" ? v3 : level == "v4" && v4;
#else
    return false;
#endif
}

}  // namespace gpuens
