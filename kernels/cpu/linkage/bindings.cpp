// What Python sees of linkages: the functions of primitives.h.
#include "bindings.h"
#include "linkage/arguments.h"
#include "linkage/primitives.h"
#include "parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_linkage(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("sort_merges", &sort_merges, "kept"_a, "absorbed"_a, "similarities"_a, "sorted"_a, run());
    m.def("cut_merges", &cut_merges, "kept"_a, "absorbed"_a, "labels"_a, run());
    m.def("count_large", &count_large, "kept"_a, "absorbed"_a, "counts"_a, "least"_a, "n_large"_a, run());
    m.def("number_nodes", &number_nodes, "kept"_a, "absorbed"_a, "children"_a, "n_leaves"_a, run());
    m.def("name_merges", &name_merges, "one"_a, "other"_a, "n_leaves"_a, "kept"_a, "absorbed"_a, run());
    m.def("find_apart", &find_apart, "kept"_a, "absorbed"_a, "observed"_a, "apart"_a, run());
    m.def("link_few", &link_few, "columns"_a, "offsets"_a, "weights"_a, "whole"_a, "counts"_a, "sorted"_a, run());
    m.def("lay_out_tiles", &lay_out_tiles, "columns"_a, "tiled"_a, run());
    m.def("nearest_rows", &nearest_rows, "tiled"_a, "queries"_a, "least"_a, "component"_a, "lists"_a, run());
    m.def("merge_affinities", &merge_affinities, "affinities"_a, "kept"_a, "absorbed"_a, run());
    m.def("search_general", &search_general, "queries"_a, "active"_a, "regions"_a, "affinities"_a, "n_clusterings"_a,
          "margin"_a, "lists"_a, run());
    m.def("search_observed", &search_observed, "queries"_a, "active"_a, "regions"_a, "weights"_a, "bounding"_a,
          "n_clusterings"_a, "lists"_a, run());
    m.def("offer_tile", &offer_tile, "start"_a, "tile"_a, "component"_a, "edges"_a, run());
    m.def("offer_listed", &offer_listed, "component"_a, "lists"_a, "rows"_a, "edges"_a, "unsure"_a, run());
    m.def("contract", &contract, "component"_a, "tail"_a, "head"_a, "used"_a, run());
}

}  // namespace gpuens
