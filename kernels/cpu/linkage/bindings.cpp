// What Python sees of linkages: the functions of primitives.h.
#include "bindings.h"
#include "linkage/arguments.h"
#include "linkage/primitives.h"
#include "linkage/row_regions.h"
#include "parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_linkage(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.attr("LANES") = LANES;
    m.attr("LINE") = LINE;
    m.attr("TILE_ROWS") = TILE_ROWS;
    m.attr("SEGMENT") = SEGMENT;
    m.attr("CANDIDATES") = CANDIDATES;
    m.attr("LONG_BATCH") = LONG_BATCH;
    m.attr("BYTE") = BYTE;
    m.attr("UNITS") = UNITS;
    m.attr("NO_HASH") = (u64)NO_HASH;
    m.def("sort_merges", &sort_merges, "kept"_a, "absorbed"_a, "similarities"_a, "sorted"_a, run());
    m.def("cut_merges", &cut_merges, "kept"_a, "absorbed"_a, "labels"_a, run());
    m.def("count_large", &count_large, "kept"_a, "absorbed"_a, "counts"_a, "least"_a, "n_large"_a, run());
    m.def("number_nodes", &number_nodes, "kept"_a, "absorbed"_a, "children"_a, "n_leaves"_a, run());
    m.def("name_merges", &name_merges, "one"_a, "other"_a, "n_leaves"_a, "kept"_a, "absorbed"_a, run());
    m.def("find_apart", &find_apart, "kept"_a, "absorbed"_a, "observed"_a, "apart"_a, run());
    m.def("link_few", &link_few, "columns"_a, "offsets"_a, "weights"_a, "whole"_a, "counts"_a, "sorted"_a, run());
    m.def("link_pairs", &link_pairs, "distances"_a, "average"_a, "kept"_a, "absorbed"_a, "heights"_a, run());
    m.def("order_by_locality", &order_by_locality, "columns"_a, "offsets"_a, "clusters"_a, "order"_a, run());
    m.def("lay_out_tiles", &lay_out_tiles, "columns"_a, "tiled"_a, run());
    m.def("nearest_rows", &nearest_rows, "tiled"_a, "queries"_a, "least"_a, "component"_a, "lists"_a, run());
    m.def("merge_affinities", &merge_affinities, "affinities"_a, "kept"_a, "absorbed"_a, run());
    m.def("search_general", &search_general, "queries"_a, "active"_a, "regions"_a, "affinities"_a, "n_clusterings"_a,
          "margin"_a, "lists"_a, run());
    m.def("search_observed", &search_observed, "queries"_a, "active"_a, "regions"_a, "weights"_a, "bounding"_a,
          "n_clusterings"_a, "lists"_a, run());
    m.def("fill_units", &fill_units, "active"_a, "members"_a, "index"_a, "regions"_a, "weights"_a, "scale"_a, "units"_a,
          run());
    m.def("link_by_table", &link_by_table, "members"_a, "regions"_a, "weights"_a, "n_clusterings"_a, "state"_a, "table"_a,
          "report"_a, run());
    m.def("bound_pairs", &bound_pairs, "table"_a, "size"_a, "merges"_a, "pairs"_a, "bounds"_a, run());
    m.def("link_neighbors", &link_neighbors, "graph"_a, "counts"_a, "rows"_a, "weights"_a, "merges"_a, run());
    m.def("offer_tile", &offer_tile, "start"_a, "tile"_a, "component"_a, "edges"_a, run());
    m.def("offer_listed", &offer_listed, "component"_a, "lists"_a, "rows"_a, "edges"_a, "unsure"_a, run());
    m.def("contract", &contract, "component"_a, "tail"_a, "head"_a, "used"_a, run());
    m.def("lay_out_rows", &lay_out_rows, "columns"_a, "offsets"_a, "regions"_a, run());
    m.def("move_histograms", &move_histograms, "regions"_a, "roomy"_a, "live"_a, run());
    m.def("compact", &compact, "regions"_a, "live"_a, run());
    m.def("merge_histograms", &merge_histograms, "regions"_a, "kept"_a, "absorbed"_a, run());
    m.def("search_regions", &search_regions, "queries"_a, "active"_a, "regions"_a, "diagonal"_a, "lists"_a,
          "most_ceilings"_a, run());
    m.def("search_rows", &search_rows, "queries"_a, "active"_a, "members"_a, "index"_a, "regions"_a, "diagonal"_a,
          "lists"_a, run());
    m.def("search_tiles", &search_new_tiles, "queries"_a, "active"_a, "members"_a, "index"_a, "regions"_a, "diagonal"_a,
          "lists"_a, "sizes"_a, run());
    m.def("look_up", nb::overload_cast<State, Regions, f64, Shortlists>(&look_up), "state"_a, "regions"_a,
          "nothing"_a, "lists"_a, run());
    m.def("take_first_listed", &take_first_listed, "some"_a, "state"_a, "tolerance"_a, "lists"_a, run());
    m.def("pair_up", &pair_up, "state"_a, run());
    m.def("update_lists", nb::overload_cast<State, Regions, AnyWeighting, Tolerance, Shortlists>(&update_lists),
          "state"_a, "regions"_a, "weighting"_a, "tolerance"_a, "lists"_a, run());
    m.def("costs", &costs, "n_queries"_a, "asked"_a, "extent"_a, "left"_a, "rows_in_tiles"_a, run());
    m.def("average_linkage", &average_linkage, "index"_a, "members"_a, "regions"_a, "diagonal"_a, "state"_a, "lists"_a,
          "conduct"_a, "report"_a, run());
}

}  // namespace gpuens
