#include "similarity/primitives.h"

#include "arguments.h"
#include "bindings.h"
#include "parallel.h"

namespace nanobind::detail {

// Blocks are tuples of starts and values.
template <>
struct type_caster<gpuens::ClusterBlocks> {
    using Tuple = std::tuple<gpuens::Vector<const gpuens::i64>, gpuens::Vector<const gpuens::f64>>;
    NB_TYPE_CASTER(gpuens::ClusterBlocks, make_caster<Tuple>::Name)

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<Tuple> caster;
        if (!caster.from_python(source, flags, cleanup)) return false;
        auto [starts, values] = (Tuple)caster;
        value = {starts, values};
        return true;
    }
};

}  // namespace nanobind::detail

namespace gpuens {

using namespace nanobind::literals;

void bind_similarity(nanobind::module_& m) {
    using run = nanobind::call_guard<Running>;
    m.def("coassociation_tile", &coassociation_tile, "rows"_a, "cols"_a, "offsets"_a, "weights"_a, "tile"_a, run());
    m.def("coupled_tile", &coupled_tile, "rows"_a, "cols"_a, "offsets"_a, "blocks"_a, "tile"_a, run());
    m.def("relative_similarities", &relative_similarities, "shares"_a, "offsets"_a, "weights"_a, "similarities"_a, run());
}

}  // namespace gpuens
