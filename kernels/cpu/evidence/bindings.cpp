#include "evidence/primitives.h"

#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "runtime/parallel.h"

namespace gpuens {

using namespace nanobind::literals;

void bind_evidence(nanobind::module_& m) {
    using run = nanobind::call_guard<Running>;
    m.def("pairs_merged", &pairs_merged, "kept"_a, "absorbed"_a, "sizes"_a, "pairs"_a, run());
    m.def("pair_histogram", &pair_histogram, "rows"_a, "parts"_a, "counts"_a, "turns"_a, "step"_a, "counted"_a, run());
    m.def("drawn_histogram", &drawn_histogram, "codes"_a, "first"_a, "second"_a, "step"_a, "counted"_a, run());
}

}  // namespace gpuens
