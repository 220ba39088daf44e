#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "generate/primitives.h"
#include "runtime/parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_generate(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("nearest_landmarks", &nearest_landmarks, "points"_a, "lists"_a, "of"_a, "landmarks"_a, "ids"_a, "squares"_a,
          run());
    m.def("landmark_products", &landmark_products, "ids"_a, "squares"_a, "sigma"_a, "n_ranges"_a, "products"_a, run());
    m.def("entries_of", &entries_of, "matrix"_a, "scale"_a, run());
    m.def("chebyshev", &chebyshev, "starts"_a, "columns"_a, "values"_a, "cut"_a, "degree"_a, "vectors"_a, run());
    m.def("turn_landmarks", &turn_landmarks, "landmarks"_a, "base"_a, "columns"_a, "squares"_a, run());
    m.def("nearest_of_stored", &nearest_of_stored, "points"_a, "lists"_a, "of"_a, "landmarks"_a, "ids"_a, "squares"_a,
          run());
    m.def("landmark_shares", &landmark_shares, "ids"_a, "squares"_a, "sigma"_a, "reach"_a, "rows"_a, run());
    m.def("nearest_by_shares", &nearest_by_shares, "ids"_a, "shares"_a, "towards"_a, "lift"_a, "labels"_a, "chunk"_a,
          "sums"_a, "sizes"_a, run());
    m.def("move_locally", &move_locally, "graph"_a, "strengths"_a, "resolution"_a, "orders"_a, "labels"_a, run());
    m.def("genie", &genie, "points"_a, "sizes"_a, "n_clusters"_a, "most_unequal"_a, "labels"_a, run());
}

}  // namespace gpuens
