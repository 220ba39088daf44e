// The bindings of each folder, for module.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace gpuens {

void bind_linkage(nb::module_& m);

}  // namespace gpuens
