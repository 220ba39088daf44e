#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "kmeans/primitives.h"
#include "runtime/parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_kmeans(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("plus_plus", &plus_plus, "turned"_a, "weights"_a, "first"_a, "uniform"_a, "centers"_a, run());
    m.def("nearest_centers", &nearest_centers, "points"_a, "counts"_a, "centers"_a, "labels"_a, "sums"_a, run());
    m.def("descend_weighted", &descend_weighted, "points"_a, "counts"_a, "enough"_a, "most_iterations"_a, "centers"_a,
          "labels"_a, run());
    m.def("best_of_starts", &best_of_starts, "points"_a, "counts"_a, "first_centers"_a, "enough"_a, "most_iterations"_a,
          "centers"_a, "labels"_a, run());
    m.def("nearest_of_sample", &nearest_of_sample, "points"_a, "around"_a, "frame"_a, "centers"_a, "labels"_a, run());
    m.def("fit_sample", &fit_sample, "points"_a, "around"_a, "frame"_a, "enough"_a, "most_iterations"_a, "centers"_a,
          run());
    m.def("nearest_centroids", &nearest_centroids, "codes"_a, "offsets"_a, "cost"_a, "constant"_a, "labels"_a,
          "distances"_a, run());
}

}  // namespace gpuens
