#include "runtime/arguments.h"
#include "runtime/bindings.h"
#include "runtime/parallel.h"
#include "partition/primitives.h"

using namespace nb::literals;

namespace gpuens {

void bind_partition(nb::module_& m) {
    using run = nb::call_guard<Running>;
    m.def("merge_by_information", &merge_by_information, "codes"_a, "offsets"_a, "counts"_a, "of_whole"_a, "labels"_a,
          "losses"_a, run());
    m.def("pam", &pam, "distances"_a, "weights"_a, "medoids"_a, run());
    m.def("search_medians", &search_medians, "ensemble"_a, "loss"_a, "bounds"_a, "orders"_a, "labels"_a, "losses"_a,
          "sweeps"_a, "links"_a = nb::none(), run());
    m.def("median_of_all", &median_of_all, "ensemble"_a, "loss"_a, "bounds"_a, "labels"_a, "links"_a = nb::none(),
          run());
    m.def("append_edges", &append_edges, "start"_a, "rows"_a, "starts"_a, "columns"_a, "edges"_a, run());
    m.def("symmetrize", &symmetrize, "starts"_a, "columns"_a, "edges"_a, "within"_a, run());
    m.def("fill_empty_parts", &fill_empty_parts, "labels"_a, "weights"_a, "n_parts"_a, "starts"_a, "columns"_a,
          "edges"_a, run());
    m.def("descend_mirkin", &descend_mirkin, "codes"_a, "offsets"_a, "counts"_a, "labels"_a, "overlap"_a, "objects"_a,
          "max_iter"_a, run());
    m.def("posteriors", &posteriors, "sums"_a, "constant"_a, "scale"_a, "shares"_a, "bits"_a, run());
    m.def("add_products", &add_products, "pairs"_a, "table"_a, "sums"_a, run());
    m.def("add_products_of_blocks", &add_products_of_blocks, "soft"_a, "values"_a, "block_rows"_a, "sums"_a, run());
    m.def("copy_links", &copy_links, "start"_a, "rows"_a, "n"_a, "links"_a, run());
    m.def("merge_by_goodness", &merge_by_goodness, "links"_a, "sizes"_a, "powers"_a, "shrink_at"_a, "kept"_a,
          "absorbed"_a, "goodness"_a, "merged"_a, run());
    m.def("label_memberships", &label_memberships, "codes"_a, "offsets"_a, "table"_a, "of_missing"_a, "sums"_a, run());
    m.def("step_correspondences", &step_correspondences, "terms"_a, "products"_a, "table"_a, "by"_a, run());
    m.def("soft_objectives", &soft_objectives, "terms"_a, "products"_a, "table"_a, "parts"_a, run());
    m.def("label_correspondences", &label_correspondences, "codes"_a, "offsets"_a, "values"_a, "known"_a, "unknown"_a,
          run());
}

}  // namespace gpuens
