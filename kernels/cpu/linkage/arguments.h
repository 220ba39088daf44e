// How the named tuples of gpuens.partition.linkage become structs.
#pragma once

#include "arguments.h"
#include "linkage/comparisons.h"
#include "linkage/regions.h"
#include "linkage/shortlist.h"

namespace nanobind::detail {

// A struct from a tuple of its members, in their order.
template <typename Struct, typename... Members>
struct from_tuple {
    using Tuple = std::tuple<Members...>;
    NB_TYPE_CASTER(Struct, make_caster<Tuple>::Name)

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<Tuple> caster;
        if (!caster.from_python(source, flags, cleanup)) return false;
        value = std::apply([](auto&&... members) { return Struct{members...}; }, (Tuple)caster);
        return true;
    }
};

template <>
struct type_caster<gpuens::Chunks>
    : from_tuple<gpuens::Chunks, gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::i64>,
                 gpuens::Vector<const gpuens::i64>> {};

template <>
struct type_caster<gpuens::Shortlists>
    : from_tuple<gpuens::Shortlists, gpuens::Matrix<gpuens::i32>, gpuens::Matrix<gpuens::f64>,
                 gpuens::Vector<gpuens::f64>, gpuens::Vector<gpuens::u64>> {};

template <typename Count>
struct type_caster<gpuens::Regions<Count>>
    : from_tuple<gpuens::Regions<Count>, gpuens::Vector<gpuens::i32>, gpuens::Vector<Count>,
                 gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::i64>> {};

}  // namespace nanobind::detail
