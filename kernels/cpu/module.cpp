// What Python sees: the functions of primitives.h, and nothing else.
#include "arguments.h"
#include "parallel.h"
#include "primitives.h"
#include "processor.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gpuens;

NB_MODULE(GPUENS_MODULE, m) {
    m.doc() = "The primitives of the CPU, compiled when gpuens was built: text in kernels/cpu.";

    // Python's error is set already, where Python looks for it
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const PythonError&) {
        }
    });
    m.def("count_threads_by", [](nb::typed<nb::callable, i64()> counts) { count_threads_by(counts.ptr()); }, "counts"_a);
    m.def("supported", &supported, "level"_a);

    // `run`: other threads of Python run meanwhile, and signals end it
    using run = nb::call_guard<Running>;
    m.def("pack_rows", &pack_rows, "columns"_a, "word_of"_a, "radices"_a, "words"_a, run());
    m.def("find_rows", &find_rows, "rows"_a, "others"_a, "places"_a, run());
    m.def("distinct_rows", &distinct_rows, "words"_a, "row_of"_a, run());
    m.def("lexicographic", &lexicographic, "words"_a, "order"_a, "first"_a, run());
    m.def("row_sums", &row_sums, "codes"_a, "offsets"_a, "values"_a, "sums"_a, run());
    m.def("row_lookups", &row_lookups, "codes"_a, "offsets"_a, "table"_a, "sums"_a, run());
    m.def("cluster_sums", &cluster_sums, "codes"_a, "offsets"_a, "values"_a, "sums"_a, run());
    m.def("label_histograms", &label_histograms, "codes"_a, "offsets"_a, "weights"_a, "labels"_a, "counted"_a, run());
}
