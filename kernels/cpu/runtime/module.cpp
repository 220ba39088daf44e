// The module, one for each level of the processor; all levels share the bindings of the folders (bindings.cpp).
#include <nanobind/nanobind.h>

#include "runtime/bindings.h"
#include "runtime/processor.h"

using namespace gpuens;

// The name by which threadpoolctl tells this library from others (gpuens/runtime/threads.py).
extern "C" NB_EXPORT void gpuens_extension() {}

NB_MODULE(GPUENS_MODULE, m) {
    m.doc() = "The primitives of the CPU, compiled when gpuens was built: text in kernels/cpu.";
    m.def("level", [] { return GPUENS_LEVEL; });
    m.def("supported", [] { return supported(GPUENS_LEVEL); });

    add_records(m);
    bind_contingency(m);
    bind_evidence(m);
    bind_generate(m);
    bind_io(m);
    bind_kmeans(m);
    bind_labels(m);
    bind_linkage(m);
    bind_neighbors(m);
    bind_partition(m);
    bind_reduction(m);
    bind_runtime(m);
    bind_similarity(m);
}
