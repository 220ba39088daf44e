// The bindings of each folder, which module.cpp collects.
#pragma once

#include <nanobind/nanobind.h>

namespace gpuens {

void bind_partition(nanobind::module_& m);
void bind_reduction(nanobind::module_& m);

}  // namespace gpuens
