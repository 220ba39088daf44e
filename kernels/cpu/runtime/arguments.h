// Casters between NumPy's arrays and spans: only arrays of the very type, C-contiguous except `Strided`, and for
// results not read-only.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include "runtime/arrays.h"
#include "contingency/intersections.h"
#include "runtime/records.h"

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

// A borrowed array of one or two dimensions; strides count entries.
struct TakenArray {
    void* data;
    gpuens::i64 shape[2], strides[2];
};

// Take an array of exactly this type and number of dimensions, in host memory. A conversion would make a copy: results
// would be lost, and input freed before it is read (arguments.cpp).
bool take_array(handle source, dlpack::dtype type, size_t n_dimensions, bool writable, bool contiguous,
                TakenArray& array,
                cleanup_list* cleanup);

template <typename T>
bool take_array(handle source, size_t n_dimensions, bool contiguous, TakenArray& array, cleanup_list* cleanup) {
    return take_array(source, dtype<std::remove_const_t<T>>(), n_dimensions, !std::is_const_v<T>, contiguous, array,
                      cleanup);
}

// An array over memory that its owner frees. Of NumPy's two types of 64-bit integers, equal but not printed alike, the
// usual.
template <typename T>
object array_over(const T* data, size_t size, capsule owner) {
    object array = cast(ndarray<numpy, T, ndim<1>>(const_cast<T*>(data), {size}, owner), rv_policy::reference);
    return std::is_same_v<T, gpuens::i64> ? object(array.attr("view")("int64")) : array;
}

template <typename T>
struct type_caster<gpuens::Vector<T>> {
    NB_TYPE_CASTER(gpuens::Vector<T>, array_name<T>)

    bool from_python(handle source, uint8_t, cleanup_list* cleanup) noexcept {
        TakenArray array;
        if (!take_array<T>(source, 1, true, array, cleanup)) return false;
        value = Value{(T*)array.data, array.shape[0]};
        return true;
    }
};

template <typename T>
struct type_caster<gpuens::Matrix<T>> {
    NB_TYPE_CASTER(gpuens::Matrix<T>, array_name<T>)

    bool from_python(handle source, uint8_t, cleanup_list* cleanup) noexcept {
        TakenArray array;
        if (!take_array<T>(source, 2, true, array, cleanup)) return false;
        value = Value{(T*)array.data, array.shape[0], array.shape[1]};
        return true;
    }
};

template <typename T>
struct type_caster<gpuens::Strided<T>> {
    NB_TYPE_CASTER(gpuens::Strided<T>, array_name<T>)

    bool from_python(handle source, uint8_t, cleanup_list* cleanup) noexcept {
        TakenArray array;
        if (!take_array<const T>(source, 2, false, array, cleanup)) return false;
        value = {(const T*)array.data, array.shape[0], array.shape[1], array.strides[0], array.strides[1]};
        return true;
    }
};

template <typename T>
struct type_caster<gpuens::Grown<T>> {
    NB_TYPE_CASTER(gpuens::Grown<T>, array_name<T>)

    static handle from_cpp(gpuens::Grown<T>&& grown, rv_policy, cleanup_list*) {
        auto* kept = new gpuens::Grown<T>(std::move(grown));
        capsule owner(kept, [](void* p) noexcept { delete static_cast<gpuens::Grown<T>*>(p); });
        return array_over(kept->data(), kept->size(), owner).release();
    }
};

template <typename Member>
bool is_member(handle source, Member& member, uint8_t flags, cleanup_list* cleanup) {
    make_caster<Member> caster;
    if (!caster.from_python(source, flags, cleanup)) return false;
    member = caster.operator cast_t<Member>();
    return true;
}

// The class of a record in Python and its names of fields, which add_records makes.
struct RecordClass {
    const char* name;
    const char* const* fields;
    size_t n_fields;
    PyObject *type = nullptr, *names = nullptr;

    RecordClass(const char* name, const char* const* fields, size_t n_fields);
};

template <gpuens::Record T>
inline RecordClass class_of{T::RECORD_NAME, T::FIELD_NAMES, std::size(T::FIELD_NAMES)};

// A field of any type, read from Python or written for it by functions that are compiled once for many records.
struct FieldReader {
    void* field;
    bool (*read)(handle source, void* field, uint8_t flags, cleanup_list* cleanup);

    template <typename T>
    explicit FieldReader(T* field_)
        : field(field_), read([](handle source, void* to, uint8_t flags, cleanup_list* cleanup) {
        return is_member(source, *static_cast<T*>(to), flags, cleanup);
    }) {}
};

struct FieldWriter {
    const void* field;
    object (*write)(const void* field, const capsule& owner);

    template <typename T>
    explicit FieldWriter(const T* number) : field(number), write([](const void* from, const capsule&) {
        return cast(*static_cast<const T*>(from));
    }) {}

    template <typename T>
    explicit FieldWriter(const gpuens::Vector<const T>* array)
        : field(array), write([](const void* from, const capsule& owner) {
        const auto& vector = *static_cast<const gpuens::Vector<const T>*>(from);
        return array_over(vector.data, (size_t)vector.size, owner);
    }) {}
};

bool read_record(handle source, const RecordClass& record, const FieldReader* fields, uint8_t flags,
                 cleanup_list* cleanup);
handle write_record(const RecordClass& record, const FieldWriter* fields, const capsule& owner);

template <gpuens::Record T>
struct type_caster<T> {
    NB_TYPE_CASTER(T, const_name(T::RECORD_NAME))

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
        return read_record(source, class_of<T>, T::template list_fields<FieldReader>(value).data(), flags, cleanup);
    }

    // The record's `memory` owns its arrays.
    static handle from_cpp(const T& record, rv_policy, cleanup_list*) {
        capsule owner(new std::shared_ptr<void>(record.memory),
                      [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
        return write_record(class_of<T>, T::template list_fields<FieldWriter>(record).data(), owner);
    }
};

}  // namespace nanobind::detail
