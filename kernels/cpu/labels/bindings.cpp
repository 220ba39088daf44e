#include "labels/primitives.h"
#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "runtime/parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_labels(nb::module_& m) {
    // `run`: other threads of Python run meanwhile, and signals end it
    using run = nb::call_guard<Running>;
    m.def("pack_rows", &pack_rows, "columns"_a, "word_of"_a, "radices"_a, "words"_a, run());
    m.def("find_rows", &find_rows, "rows"_a, "sorted_rows"_a, "places"_a, run());
    m.def("distinct_rows", &distinct_rows, "words"_a, "row_of"_a, run());
    m.def("lexicographic", &lexicographic, "words"_a, "order"_a, "first"_a, run());
    m.def("row_sums", &row_sums, "codes"_a, "offsets"_a, "values"_a, "sums"_a, run());
    m.def("row_lookups", &row_lookups, "codes"_a, "offsets"_a, "table"_a, "sums"_a, run());
    m.def("unit_points", &unit_points, "codes"_a, "offsets"_a, "table"_a, "points"_a, run());
    m.def("cluster_sums", &cluster_sums, "codes"_a, "offsets"_a, "values"_a, "sums"_a, run());
    m.def("label_histograms", &label_histograms, "codes"_a, "offsets"_a, "weights"_a, "labels"_a, "counted"_a, run());
    m.def("mark_slots", &mark_slots, "labels"_a, "table"_a, run());
    m.def("number_slots", &number_slots, "table"_a, "values"_a, "n_values"_a, run());
    m.def("write_codes", &write_codes, "labels"_a, "table"_a, "is_odd"_a, "codes"_a, run());
}

}  // namespace gpuens
