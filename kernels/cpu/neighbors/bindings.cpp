// What Python sees of neighbours: the functions of primitives.h.
#include "arguments.h"
#include "bindings.h"
#include "neighbors/primitives.h"
#include "parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_neighbors(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("walk_step", &walk_step, "starts"_a, "heads"_a, "weights"_a, "shares"_a, "result"_a, run());
    m.def("count_shares", &count_shares, "shares"_a, "counts"_a, run());
    m.def("append_shares", &append_shares, "shares"_a, "first"_a, "places"_a, "columns"_a, "values"_a, run());
    m.def("sum_regions", &sum_regions, "row_starts"_a, "columns"_a, "values"_a, "regions"_a, "sums"_a, run());
}

}  // namespace gpuens
