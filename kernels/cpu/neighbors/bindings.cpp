#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "neighbors/primitives.h"
#include "runtime/parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_neighbors(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("walk_step", &walk_step, "starts"_a, "heads"_a, "weights"_a, "shares"_a, "result"_a, run());
    m.def("count_shares", &count_shares, "shares"_a, "counts"_a, run());
    m.def("append_shares", &append_shares, "shares"_a, "first"_a, "places"_a, "columns"_a, "values"_a, run());
    m.def("pair_neighbors",
          [](Vector<const i64> starts, Vector<const i32> heads, const WalkShares& shares, i64 n_regions,
             Vector<i64> regions) {
              GrownRegions left = pair_neighbors(starts, heads, shares, n_regions, regions);
              return std::tuple(std::move(left.starts), std::move(left.heads), std::move(left.row_starts),
                                std::move(left.columns), std::move(left.values));
          },
          "starts"_a, "heads"_a, "shares"_a, "n_regions"_a, "regions"_a, run());
    m.def("sum_regions", &sum_regions, "shares"_a, "regions"_a, "sums"_a, run());
    m.def("color_objects", &color_objects, "starts"_a, "heads"_a, "colors"_a, run());
    m.def("update_memberships", &update_memberships, "graph"_a, "objects"_a, "terms"_a, "beta"_a, "memberships"_a,
          "labels"_a, run());
    m.def("sum_memberships", &sum_memberships, "memberships"_a, "members"_a, "starts"_a, "scale"_a, "shares"_a, run());
    m.def("pseudo_likelihood", &pseudo_likelihood, "graph"_a, "objects"_a, "memberships"_a, "beta"_a, "scale"_a,
          "derivatives"_a, run());
    m.def("sum_squares", &sum_squares, "residuals"_a, "shares"_a, "scale"_a, "squares"_a, run());
}

}  // namespace gpuens
