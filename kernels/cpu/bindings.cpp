// What Python sees of label matrices: the functions of primitives.h.
#include "bindings.h"

#include "arguments.h"
#include "parallel.h"
#include "primitives.h"

using namespace nb::literals;

namespace gpuens {

void bind_labels(nb::module_& m) {
    // `run`: other threads of Python run meanwhile, and signals end it
    using run = nb::call_guard<Running>;
    m.def("pack_rows", &pack_rows, "columns"_a, "word_of"_a, "radices"_a, "words"_a, run());
    m.def("find_rows", &find_rows, "rows"_a, "others"_a, "places"_a, run());
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
    m.def("over_cells", &over_cells, "labels"_a, "k"_a, "weights"_a.none(), "bytes"_a, "work"_a, run());
    m.def("count_table", &count_table, "a"_a, "b"_a, "k"_a, "weights"_a.none(), "flat"_a, run());
    m.def("count_with", &count_with, "labels"_a, "m"_a, "offsets"_a, "weights"_a.none(), "shared"_a, run());
    m.def("nonzero", &nonzero, "table"_a, run());
    m.def("place_in_square", &place_in_square, "cells"_a, "offsets"_a, "shared"_a, run());
    m.def("count_in_rows", &count_in_rows, "cells"_a, "offsets"_a, "n_cells"_a, run());
    m.def("place_in_rows", &place_in_rows, "cells"_a, "offsets"_a, "starts"_a, "indices"_a, "counts"_a, run());
    m.def("sums_of_squares", &sums_of_squares, "cells"_a, "sums"_a, run());
    m.def("informations", &informations, "cells"_a, "found"_a, run());
    m.def("unevenness", &unevenness, "cells"_a, "found"_a, run());
    m.def("shares_of_cells", &shares_of_cells, "cells"_a, "labels"_a, "k"_a, "times"_a, "one"_a, "means"_a, "sums"_a, run());
    m.def("exponentials", &exponentials, "exponents"_a, "powers"_a, run());
    m.def("logarithms", &logarithms, "numbers"_a, "bits"_a, run());
    m.def("entropy_terms", &entropy_terms, "one"_a, "terms"_a, run());
    m.def("add_entropies", &add_entropies, "cells"_a, "offsets"_a, "one"_a, "terms"_a, "times"_a, "of_rows"_a,
          "of_columns"_a, run());
    m.def("entropies_of_words", &entropies_of_words, "words"_a, "times"_a, "terms"_a, "total"_a, run());
    m.def("add_row_entropies", &add_row_entropies, "rows"_a, "columns"_a, "counts"_a, "offsets"_a, "one"_a, "total"_a,
          run());
}

}  // namespace gpuens
