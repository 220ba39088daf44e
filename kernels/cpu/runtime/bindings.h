// The functions of each folder for Python (its bindings.cpp).
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace gpuens {

// A named tuple for each record that a bound function takes or returns (arguments.cpp).
void add_records(nb::module_& m);

void bind_contingency(nb::module_& m);
void bind_evidence(nb::module_& m);
void bind_generate(nb::module_& m);
void bind_io(nb::module_& m);
void bind_kmeans(nb::module_& m);
void bind_labels(nb::module_& m);
void bind_linkage(nb::module_& m);
void bind_neighbors(nb::module_& m);
void bind_partition(nb::module_& m);
void bind_reduction(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_similarity(nb::module_& m);

}  // namespace gpuens
