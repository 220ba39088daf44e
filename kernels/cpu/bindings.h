// What Python sees of each folder (its bindings.cpp).
#pragma once

#include <nanobind/nanobind.h>

namespace gpuens {

void bind_generate(nanobind::module_& m);
void bind_io(nanobind::module_& m);
void bind_kmeans(nanobind::module_& m);

}  // namespace gpuens
