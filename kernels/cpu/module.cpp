// The module, one for each level of the processor; its functions are bound once for all (bindings.cpp).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "parallel.h"
#include "processor.h"

using namespace nb::literals;
using namespace gpuens;

// The name by which threadpoolctl tells this library from others (gpuens/runtime/threads.py).
extern "C" NB_EXPORT void gpuens_extension() {}

NB_MODULE(GPUENS_MODULE, m) {
    m.doc() = "The primitives of the CPU, compiled when gpuens was built: text in kernels/cpu.";

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
    m.def("level", [] { return GPUENS_LEVEL; });
    m.def("supported", [] { return supported(GPUENS_LEVEL); });

    add_records(m);
    bind_labels(m);
    bind_evidence(m);
    bind_generate(m);
    bind_io(m);
    bind_kmeans(m);
    bind_linkage(m);
    bind_neighbors(m);
    bind_partition(m);
    bind_reduction(m);
    bind_similarity(m);
}
