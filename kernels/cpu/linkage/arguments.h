// How the named tuples of gpuens.partition.linkage become structs.
#pragma once

#include "../arguments.h"
#include "linkage/average.h"
#include "linkage/comparisons.h"
#include "linkage/primitives.h"
#include "linkage/regions.h"
#include "linkage/shortlist.h"

namespace nanobind::detail {

template <>
struct type_caster<gpuens::Chunks>
    : from_tuple<&gpuens::Chunks::starts, &gpuens::Chunks::chunks, &gpuens::Chunks::tables> {};

template <>
struct type_caster<gpuens::Shortlists>
    : from_tuple<&gpuens::Shortlists::ids, &gpuens::Shortlists::similarities, &gpuens::Shortlists::bound,
                 &gpuens::Shortlists::bound_hash> {};

template <>
struct type_caster<gpuens::Merges> : from_tuple<&gpuens::Merges::kept, &gpuens::Merges::absorbed, &gpuens::Merges::heights> {};

template <typename Code, typename Unit>
struct type_caster<gpuens::Tiled<Code, Unit>>
    : from_tuple<&gpuens::Tiled<Code, Unit>::rows, &gpuens::Tiled<Code, Unit>::labels,
                 &gpuens::Tiled<Code, Unit>::in_tiles, &gpuens::Tiled<Code, Unit>::in_segments,
                 &gpuens::Tiled<Code, Unit>::units, &gpuens::Tiled<Code, Unit>::weights,
                 &gpuens::Tiled<Code, Unit>::starts, &gpuens::Tiled<Code, Unit>::chunks,
                 &gpuens::Tiled<Code, Unit>::order, &gpuens::Tiled<Code, Unit>::sizes,
                 &gpuens::Tiled<Code, Unit>::scale> {};

template <>
struct type_caster<gpuens::Neighbors> : from_tuple<&gpuens::Neighbors::starts, &gpuens::Neighbors::neighbors> {};

template <typename Value>
struct type_caster<gpuens::SparseRows<Value>>
    : from_tuple<&gpuens::SparseRows<Value>::starts, &gpuens::SparseRows<Value>::columns,
                 &gpuens::SparseRows<Value>::values> {};

template <>
struct type_caster<gpuens::Edges>
    : from_tuple<&gpuens::Edges::tail, &gpuens::Edges::head, &gpuens::Edges::similarity, &gpuens::Edges::tie> {};

template <typename Weight>
struct type_caster<gpuens::Diagonal<Weight>>
    : from_tuple<&gpuens::Diagonal<Weight>::weights, &gpuens::Diagonal<Weight>::bounding,
                 &gpuens::Diagonal<Weight>::unit, &gpuens::Diagonal<Weight>::n_clusterings> {};

template <>
struct type_caster<gpuens::RowIndex>
    : from_tuple<&gpuens::RowIndex::rows, &gpuens::RowIndex::place, &gpuens::RowIndex::sizes, &gpuens::RowIndex::offsets,
                 &gpuens::RowIndex::of_bytes, &gpuens::RowIndex::of_words> {};

template <>
struct type_caster<gpuens::TileSizes> : from_tuple<&gpuens::TileSizes::rows, &gpuens::TileSizes::most_ceilings> {};

template <>
struct type_caster<gpuens::TableTerms>
    : from_tuple<&gpuens::TableTerms::most_regions, &gpuens::TableTerms::comparisons, &gpuens::TableTerms::n_listed> {};

template <>
struct type_caster<gpuens::Conduct>
    : from_tuple<&gpuens::Conduct::left, &gpuens::Conduct::tiles, &gpuens::Conduct::only, &gpuens::Conduct::n_nodes,
                 &gpuens::Conduct::table> {};

template <>
struct type_caster<gpuens::LabelRows>
    : from_tuple<&gpuens::LabelRows::columns, &gpuens::LabelRows::offsets, &gpuens::LabelRows::counts> {};

}  // namespace nanobind::detail
