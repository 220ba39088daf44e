#include "contingency/primitives.h"
#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "runtime/parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_contingency(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("over_cells", &over_cells, "labels"_a, "k"_a, "weights"_a.none(), "bytes"_a, "work"_a, run());
    m.def("count_table", &count_table, "a"_a, "b"_a, "k"_a, "weights"_a.none(), "flat"_a, run());
    m.def("count_with", &count_with, "labels"_a, "m"_a, "offsets"_a, "weights"_a.none(), "shared"_a, run());
    m.def("nonzero", &nonzero, "table"_a, run());
    m.def("place_in_square", &place_in_square, "cells"_a, "offsets"_a, "shared"_a, run());
    m.def("count_in_rows", &count_in_rows, "cells"_a, "offsets"_a, "n_cells"_a, run());
    m.def("place_in_rows", &place_in_rows, "cells"_a, "offsets"_a, "starts"_a, "indices"_a, "counts"_a, run());
    m.def("sums_of_squares", &sums_of_squares, "cells"_a, "sums"_a, run());
    m.def("informations", &informations, "cells"_a, "terms"_a, run());
    m.def("unevenness", &unevenness, "cells"_a, "results"_a, run());
    m.def("shares_of_cells", &shares_of_cells, "cells"_a, "labels"_a, "k"_a, "times"_a, "one"_a, "means"_a, "sums"_a, run());
    m.def("entropy_terms", &entropy_terms, "one"_a, "terms"_a, run());
    m.def("add_entropies", &add_entropies, "cells"_a, "offsets"_a, "one"_a, "terms"_a, "times"_a, "of_rows"_a,
          "of_columns"_a, run());
    m.def("entropies_of_words", &entropies_of_words, "words"_a, "times"_a, "terms"_a, "total"_a, run());
    m.def("add_row_entropies", &add_row_entropies, "rows"_a, "columns"_a, "counts"_a, "offsets"_a, "one"_a, "total"_a,
          run());
}

}  // namespace gpuens
