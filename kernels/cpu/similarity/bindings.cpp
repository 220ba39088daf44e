#include "similarity/primitives.h"

#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "runtime/parallel.h"

namespace gpuens {

using namespace nanobind::literals;

void bind_similarity(nanobind::module_& m) {
    using run = nanobind::call_guard<Running>;
    m.def("coassociation_tile", &coassociation_tile, "rows"_a, "cols"_a, "offsets"_a, "weights"_a, "tile"_a, run());
    m.def("coupled_tile", &coupled_tile, "rows"_a, "cols"_a, "offsets"_a, "blocks"_a, "tile"_a, run());
    m.def("relative_similarities", &relative_similarities, "shares"_a, "offsets"_a, "weights"_a, "similarities"_a, run());
    m.def("mapping_coefficients", &mapping_coefficients, "of"_a, "codes"_a, "offsets"_a, "firsts"_a, "coefficients"_a, run());
    m.def("nth_largest", &nth_largest, "tile"_a, "n"_a, "thresholds"_a, run());
    m.def("walk_products", &walk_products, "step"_a, "n_steps"_a, "products"_a, "spare"_a, run());
    m.def("row_distances", &row_distances, "points"_a, "bounds"_a, "rows"_a, "mean"_a, "farthest"_a, run());
    m.def("farthest_in_clusters", &farthest_in_clusters, "codes"_a, "offsets"_a, "farthest"_a, "largest"_a, run());
    m.def("refine", &refine, "codes"_a, "offsets"_a, "distances"_a, "inverse"_a, "weights"_a, "similar"_a, run());
    m.def("split_points", &split_points, "points"_a, "starts"_a, "order"_a, run());
    m.def("fill_leaves", &fill_leaves, "points"_a, "order"_a, "starts"_a, "coordinates"_a, "lower"_a, "upper"_a, run());
    m.def("nearest_others", &nearest_others, "points"_a, "first"_a, "leaves"_a, "ids"_a, "squares"_a, run());
    m.def("nearest_candidates", &nearest_candidates, "points"_a, "first"_a, "candidates"_a, "beyond"_a, "ids"_a,
          "squares"_a, run());
    m.def("doubled_ranks", &doubled_ranks, "columns"_a, "counts"_a, "n"_a, "shift"_a, "ranks"_a, run());
    m.def("rank_products", &rank_products, "columns"_a, "rows"_a, "counts"_a, "products"_a, run());
    m.def("correlations", &correlations, "products"_a, "totals"_a, "n"_a, "deviations"_a, "result"_a, run());
    m.def("neighborhood_bits", &neighborhood_bits, "rows"_a, "cols"_a, "offsets"_a, "blocks"_a, "threshold"_a, "bits"_a,
          run());
    m.def("overlaps", &overlaps, "rows"_a, "cols"_a, "runs"_a, "common"_a, run());
    m.def("leave_out_themselves", &leave_out_themselves, "common"_a, "bits"_a, "rows"_a, "cols"_a, "place"_a, "are_neighbors"_a,
          "counts"_a, run());
    m.def("mark_members", &mark_members, "codes"_a, "offsets"_a, "members"_a, run());
    m.def("neighbor_counts", &neighbor_counts, "bits"_a, "rows"_a, "offsets"_a, "counts"_a, "sums"_a, run());
    m.def("neighbor_sums", &neighbor_sums, "bits"_a, "values"_a, "sums"_a, run());
}

}  // namespace gpuens
