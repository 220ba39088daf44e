#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "runtime/parallel.h"
#include "reduction/primitives.h"

using namespace nb::literals;

namespace gpuens {

namespace {

using Whole = Vector<const i64>;
using ShapeTuple = std::tuple<Whole, Whole, Whole, Whole, Whole>;

TreeShape shape_of(const ShapeTuple& members) {
    return std::apply([](auto... each) { return TreeShape{each...}; }, members);
}

}  // namespace

void bind_reduction(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("common_prefixes", &common_prefixes, "rows"_a, "prefixes"_a, run());
    m.def("inner_nodes", &inner_nodes, "prefixes"_a, run());
    m.def("topmost_nodes", &topmost_nodes, "parents"_a, "within"_a, "topmost"_a, run());
    m.def("mark_ancestors", &mark_ancestors, "parents"_a, "marks"_a, run());
    m.def("measure_nodes",
          [](Codes<Matrix> rows, ShapeTuple shape, i64 n_des, Vector<i32> radii, Vector<i64> representatives) {
              measure_nodes(rows, shape_of(shape), n_des, radii, representatives);
          },
          "rows"_a, "shape"_a, "n_des"_a, "radii"_a, "representatives"_a, run());
    m.def("descend_tree",
          [](Codes<Matrix> rows, ShapeTuple shape, Whole representatives, Vector<const u8> marks, Whole nodes,
             Vector<i64> ends) { descend_tree(rows, shape_of(shape), representatives, marks, nodes, ends); },
          "rows"_a, "shape"_a, "representatives"_a, "marks"_a, "nodes"_a, "ends"_a, run());
}

}  // namespace gpuens
