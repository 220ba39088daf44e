// What Python sees of each folder (its bindings.cpp).
#pragma once

#include <nanobind/nanobind.h>

namespace gpuens {

void bind_kmeans(nanobind::module_& m);

}  // namespace gpuens
