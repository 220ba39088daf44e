#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "io/primitives.h"
#include "runtime/parallel.h"

using namespace nb::literals;

namespace gpuens {

void bind_io(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("find_irregular_row", &find_irregular_row, "text"_a, "separator"_a, "n_first"_a, "n_fields"_a, run());
}

}  // namespace gpuens
