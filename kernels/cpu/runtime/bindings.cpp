#include "runtime/bindings.h"

#include "runtime/arguments.h"
#include "runtime/parallel.h"
#include "runtime/primitives.h"

using namespace nb::literals;

namespace gpuens {

void bind_runtime(nb::module_& m) {
    // Python's error is set already, where Python looks for it
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const PythonError&) {
        }
    });
    m.def("prepare", [](nb::typed<nb::callable, i64()> count_threads, u64 main_thread) {
        prepare(count_threads.ptr(), main_thread);
    }, "count_threads"_a, "main_thread"_a);
    m.def("end_calls", &end_calls);

    using run = nb::call_guard<Running>;
    m.def("exponentials", &exponentials, "exponents"_a, "powers"_a, run());
    m.def("logarithms", &logarithms, "numbers"_a, "bits"_a, run());
}

}  // namespace gpuens
