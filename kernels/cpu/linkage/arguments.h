// How the named tuples of gpuens.partition.linkage become structs.
#pragma once

#include "../arguments.h"
#include "linkage/comparisons.h"
#include "linkage/primitives.h"
#include "linkage/regions.h"
#include "linkage/shortlist.h"

namespace nanobind::detail {

template <>
struct type_caster<gpuens::UnitScale>
    : from_tuple<&gpuens::UnitScale::to_worth, &gpuens::UnitScale::in_bytes, &gpuens::UnitScale::to_units,
                 &gpuens::UnitScale::up> {};

template <>
struct type_caster<gpuens::UnitTable>
    : from_tuple<&gpuens::UnitTable::units, &gpuens::UnitTable::slack, &gpuens::UnitTable::unit,
                 &gpuens::UnitTable::n_listed> {};

template <>
struct type_caster<gpuens::Regions>
    : from_tuple<&gpuens::Regions::clusters, &gpuens::Regions::counts, &gpuens::Regions::start, &gpuens::Regions::length,
                 &gpuens::Regions::size, &gpuens::Regions::used> {};

template <>
struct type_caster<gpuens::AnyWeighting>
    : from_tuple<&gpuens::AnyWeighting::weights, &gpuens::AnyWeighting::n_clusterings> {};

template <>
struct type_caster<gpuens::Tolerance>
    : from_tuple<&gpuens::Tolerance::slack, &gpuens::Tolerance::margin, &gpuens::Tolerance::nothing> {};

template <>
struct type_caster<gpuens::State>
    : from_tuple<&gpuens::State::active, &gpuens::State::survivors, &gpuens::State::unknown, &gpuens::State::nearest,
                 &gpuens::State::nearest_similarity, &gpuens::State::into, &gpuens::State::partner, &gpuens::State::kept,
                 &gpuens::State::absorbed, &gpuens::State::merged_at, &gpuens::State::counts> {};

template <>
struct type_caster<gpuens::Members>
    : from_tuple<&gpuens::Members::follows, &gpuens::Members::last, &gpuens::Members::n_rows> {};

template <>
struct type_caster<gpuens::TileSizes> : from_tuple<&gpuens::TileSizes::rows, &gpuens::TileSizes::most_ceilings> {};

template <>
struct type_caster<gpuens::TableTerms>
    : from_tuple<&gpuens::TableTerms::most_regions, &gpuens::TableTerms::comparisons> {};

template <>
struct type_caster<gpuens::Conduct>
    : from_tuple<&gpuens::Conduct::slack, &gpuens::Conduct::left, &gpuens::Conduct::tiles, &gpuens::Conduct::only,
                 &gpuens::Conduct::n_nodes, &gpuens::Conduct::table> {};

template <>
struct type_caster<gpuens::Extent>
    : from_tuple<&gpuens::Extent::labels, &gpuens::Extent::of_many, &gpuens::Extent::entries,
                 &gpuens::Extent::clusters> {};

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
