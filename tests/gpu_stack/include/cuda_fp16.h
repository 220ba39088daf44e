// CUDA's type half, with the members that CuPy's float16 uses.
#pragma once

#include <string.h>

#include <type_traits>

struct __half_raw {
    unsigned short x;
};

struct half {
    _Float16 value;
    half() = default;
    half(__half_raw raw) { memcpy(&value, &raw, sizeof value); }
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    half(T x) : value(_Float16(x)) {}
    operator float() const { return float(value); }
    operator __half_raw() const {
        __half_raw raw;
        memcpy(&raw, &value, sizeof raw);
        return raw;
    }
};

inline float __half2float(half x) { return x; }
inline half __float2half_rn(float x) { return x; }
inline unsigned short __half_as_ushort(half x) { return __half_raw(x).x; }
inline half __ushort_as_half(unsigned short x) { return __half_raw{x}; }
