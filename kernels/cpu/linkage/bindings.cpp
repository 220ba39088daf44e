#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "linkage/average.h"
#include "linkage/primitives.h"
#include "runtime/parallel.h"

using namespace nb::literals;

#define QUOTED(...) #__VA_ARGS__
#define TEXT_OF(macro) QUOTED(macro)

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
    m.attr("RETIRED") = RETIRED;
    m.attr("UNKNOWN") = UNKNOWN;
    m.attr("COUNTS") = TEXT_OF(COUNTS);
    m.def("sort_merges", &sort_merges, "kept"_a, "absorbed"_a, "similarities"_a, "sorted"_a, run());
    m.def("cut_merges", &cut_merges, "kept"_a, "absorbed"_a, "labels"_a, run());
    m.def("count_large", &count_large, "kept"_a, "absorbed"_a, "counts"_a, "smallest_size"_a, "n_large"_a, run());
    m.def("number_nodes", &number_nodes, "kept"_a, "absorbed"_a, "children"_a, "n_leaves"_a, run());
    m.def("name_merges", &name_merges, "one"_a, "other"_a, "n_leaves"_a, "kept"_a, "absorbed"_a, run());
    m.def("find_apart", &find_apart, "kept"_a, "absorbed"_a, "observed"_a, "apart"_a, run());
    m.def("link_few", &link_few, "rows"_a, "weights"_a, "exact"_a, "sorted"_a, run());
    m.def("link_pairs", &link_pairs, "distances"_a, "average"_a, "kept"_a, "absorbed"_a, "heights"_a, run());
    m.def("order_by_locality", &order_by_locality, "columns"_a, "offsets"_a, "clusters"_a, "order"_a, run());
    m.def("lay_out_tiles", &lay_out_tiles, "columns"_a, "tiled"_a, run());
    m.def("nearest_rows", &nearest_rows, "tiled"_a, "queries"_a, "smallest"_a, "component"_a, "lists"_a, run());
    m.def("link_neighbors", &link_neighbors, "graph"_a, "counts"_a, "rows"_a, "weights"_a, "merges"_a, run());
    m.def("offer_tile", &offer_tile, "start"_a, "tile"_a, "component"_a, "edges"_a, run());
    m.def("offer_listed", &offer_listed, "component"_a, "lists"_a, "rows"_a, "edges"_a, "unsure"_a, run());
    m.def("contract", &contract, "component"_a, "tail"_a, "head"_a, "used"_a, run());
    m.def("link_diagonal", &link_diagonal, "columns"_a, "index"_a, "diagonal"_a, "lists"_a, "conduct"_a, "sorted"_a,
          "report"_a, run());
    m.def("link_constrained", &link_constrained, "columns"_a, "index"_a, "diagonal"_a, "lists"_a, "conduct"_a,
          "links"_a, "sorted"_a, "report"_a, run());
    m.def("link_general", &link_general, "rows"_a, "affinities"_a, "margin"_a, "n_listed"_a, "sorted"_a, "searched"_a,
          "report"_a, run());
    m.def("link_observed", &link_observed, "rows"_a, "weights"_a, "bounding"_a, "n_listed"_a, "sorted"_a, "searched"_a,
          "report"_a, run());
}

}  // namespace gpuens
