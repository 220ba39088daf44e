// CuPy's own header needs Thrust for devices. No kernel here computes with complex numbers; kernels only name the type.
#pragma once

template <class T>
struct complex {
    T r, i;
    complex(T r = 0, T i = 0) : r(r), i(i) {}
    T real() const { return r; }
    T imag() const { return i; }
};

template <class T>
T norm(const complex<T>& z) {
    return z.r * z.r + z.i * z.i;
}
