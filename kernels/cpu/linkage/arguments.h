// How the named tuples of gpuens.partition.linkage become structs.
#pragma once

#include "../arguments.h"
#include "linkage/comparisons.h"
#include "linkage/primitives.h"
#include "linkage/regions.h"
#include "linkage/shortlist.h"

namespace nanobind::detail {

template <>
struct type_caster<gpuens::Chunks>
    : from_tuple<gpuens::Chunks, gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::i64>,
                 gpuens::Vector<const gpuens::i64>> {};

template <>
struct type_caster<gpuens::Shortlists>
    : from_tuple<gpuens::Shortlists, gpuens::Matrix<gpuens::i32>, gpuens::Matrix<gpuens::f64>,
                 gpuens::Vector<gpuens::f64>, gpuens::Vector<gpuens::u64>> {};

template <>
struct type_caster<gpuens::Merges>
    : from_tuple<gpuens::Merges, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::f64>> {};

template <typename Code, typename Unit, typename Weight>
struct type_caster<gpuens::Tiled<Code, Unit, Weight>>
    : from_tuple<gpuens::Tiled<Code, Unit, Weight>, gpuens::Matrix<Code>, gpuens::Matrix<Code>, gpuens::Matrix<Unit>,
                 gpuens::Matrix<Unit>, gpuens::Vector<const Unit>, gpuens::Vector<const Weight>,
                 gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::i64>,
                 gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::i64>, gpuens::f64> {};

template <>
struct type_caster<gpuens::UnitScale>
    : from_tuple<gpuens::UnitScale, gpuens::f64, bool, gpuens::f64, gpuens::f64> {};

template <>
struct type_caster<gpuens::UnitTable>
    : from_tuple<gpuens::UnitTable, gpuens::Matrix<gpuens::u16>, gpuens::f64, gpuens::f64, gpuens::i64> {};

template <>
struct type_caster<gpuens::Neighbors>
    : from_tuple<gpuens::Neighbors, gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::i32>> {};

template <typename Value>
struct type_caster<gpuens::SparseRows<Value>>
    : from_tuple<gpuens::SparseRows<Value>, gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::i32>,
                 gpuens::Vector<const Value>> {};

template <>
struct type_caster<gpuens::Edges>
    : from_tuple<gpuens::Edges, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::f64>, gpuens::Vector<gpuens::u64>> {};

template <typename Count>
struct type_caster<gpuens::Regions<Count>>
    : from_tuple<gpuens::Regions<Count>, gpuens::Vector<gpuens::i32>, gpuens::Vector<Count>,
                 gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::i64>> {};

template <typename Weight, typename Bound>
struct type_caster<gpuens::Diagonal<Weight, Bound>>
    : from_tuple<gpuens::Diagonal<Weight, Bound>, gpuens::Vector<const Weight>, gpuens::Vector<const Bound>,
                 gpuens::f64, gpuens::i64> {};

template <>
struct type_caster<gpuens::AnyWeighting>
    : from_tuple<gpuens::AnyWeighting, decltype(gpuens::AnyWeighting::weights), std::optional<gpuens::i64>> {};

template <>
struct type_caster<gpuens::Tolerance> : from_tuple<gpuens::Tolerance, gpuens::f64, gpuens::f64, gpuens::f64> {};

template <>
struct type_caster<gpuens::State>
    : from_tuple<gpuens::State, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::f64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::f64>, gpuens::Vector<gpuens::i64>> {};

template <>
struct type_caster<gpuens::Members>
    : from_tuple<gpuens::Members, gpuens::Vector<gpuens::i64>, gpuens::Vector<gpuens::i64>,
                 gpuens::Vector<gpuens::i64>> {};

template <>
struct type_caster<gpuens::RowIndex>
    : from_tuple<gpuens::RowIndex, gpuens::Codes<gpuens::Matrix>, gpuens::Vector<const gpuens::i64>,
                 gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::i64>, gpuens::Chunks,
                 gpuens::Chunks> {};

template <>
struct type_caster<gpuens::TileSizes> : from_tuple<gpuens::TileSizes, gpuens::i64, gpuens::i64> {};

template <>
struct type_caster<gpuens::TableTerms> : from_tuple<gpuens::TableTerms, gpuens::i64, gpuens::i64> {};

template <>
struct type_caster<gpuens::Conduct>
    : from_tuple<gpuens::Conduct, gpuens::f64, gpuens::f64, gpuens::TileSizes, std::optional<gpuens::i64>,
                 gpuens::i64, gpuens::TableTerms> {};

template <>
struct type_caster<gpuens::Extent>
    : from_tuple<gpuens::Extent, gpuens::i64, gpuens::i64, gpuens::i64, gpuens::i64> {};

template <>
struct type_caster<gpuens::Costs> {
    using Tuple = std::tuple<gpuens::f64, gpuens::f64, gpuens::f64>;
    NB_TYPE_CASTER(gpuens::Costs, make_caster<Tuple>::Name)

    static handle from_cpp(const gpuens::Costs& costs, rv_policy, cleanup_list*) {
        return make_tuple(costs.tiles, costs.rows, costs.histograms).release();
    }
};

template <>
struct type_caster<gpuens::Linked> {
    using Tuple = std::tuple<std::optional<gpuens::Arena>, gpuens::i64, std::tuple<gpuens::i64, gpuens::i64, gpuens::i64>,
                             bool>;
    NB_TYPE_CASTER(gpuens::Linked, make_caster<Tuple>::Name)

    static handle from_cpp(gpuens::Linked&& linked, rv_policy policy, cleanup_list* cleanup) {
        Tuple tuple(std::move(linked.arena), linked.searches, linked.used, linked.table_pays);
        return make_caster<Tuple>::from_cpp(std::move(tuple), policy, cleanup);
    }
};

}  // namespace nanobind::detail
