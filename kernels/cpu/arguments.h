// How NumPy's arrays become spans, and back: only arrays of the very type, C-contiguous, and for results not read-only.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include "arrays.h"

namespace nanobind::detail {

template <typename T>
constexpr auto numpy_name() {
    using U = std::remove_const_t<T>;
    if constexpr (std::is_same_v<U, bool>) return const_name("numpy.bool");
    else if constexpr (std::is_same_v<U, gpuens::f64>) return const_name("numpy.float64");
    else if constexpr (std::is_same_v<U, gpuens::f32>) return const_name("numpy.float32");
    else if constexpr (std::is_unsigned_v<U>) return const_name("numpy.uint") + const_name<8 * sizeof(U)>();
    else return const_name("numpy.int") + const_name<8 * sizeof(U)>();
}

template <typename T>
constexpr auto array_name = const_name("numpy.typing.NDArray[") + numpy_name<T>() + const_name("]");

// An array that was converted would be a copy: results would be lost, and other data freed before they are read.
template <typename T, size_t N>
bool is_array(handle source, ndarray<T, ndim<N>, c_contig, device::cpu>& found, cleanup_list* cleanup) {
    make_caster<ndarray<T, ndim<N>, c_contig, device::cpu>> caster;
    if (!caster.from_python(source, 0, cleanup)) return false;
    found = caster.value;
    return true;
}

template <typename T>
struct type_caster<gpuens::Vector<T>> {
    NB_TYPE_CASTER(gpuens::Vector<T>, array_name<T>)

    bool from_python(handle source, uint8_t, cleanup_list* cleanup) noexcept {
        ndarray<T, ndim<1>, c_contig, device::cpu> found;
        if (!is_array<T, 1>(source, found, cleanup)) return false;
        value = Value{found.data(), (gpuens::i64)found.shape(0)};
        return true;
    }
};

template <typename T>
struct type_caster<gpuens::Matrix<T>> {
    NB_TYPE_CASTER(gpuens::Matrix<T>, array_name<T>)

    bool from_python(handle source, uint8_t, cleanup_list* cleanup) noexcept {
        ndarray<T, ndim<2>, c_contig, device::cpu> found;
        if (!is_array<T, 2>(source, found, cleanup)) return false;
        value = Value{found.data(), (gpuens::i64)found.shape(0), (gpuens::i64)found.shape(1)};
        return true;
    }
};

template <typename T>
struct type_caster<gpuens::Grown<T>> {
    NB_TYPE_CASTER(gpuens::Grown<T>, array_name<T>)

    static handle from_cpp(gpuens::Grown<T>&& grown, rv_policy, cleanup_list* cleanup) {
        auto* kept = new gpuens::Grown<T>(std::move(grown));
        capsule owner(kept, [](void* p) noexcept { delete static_cast<gpuens::Grown<T>*>(p); });
        ndarray<numpy, T, ndim<1>> array(kept->data(), {kept->size()}, owner);
        return make_caster<ndarray<numpy, T, ndim<1>>>::from_cpp(array, rv_policy::reference, cleanup);
    }
};

}  // namespace nanobind::detail
