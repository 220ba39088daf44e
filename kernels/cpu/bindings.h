// The folders' primitives, each bound by its own bindings.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace gpuens {

void bind_evidence(nanobind::module_& m);
void bind_similarity(nanobind::module_& m);

}  // namespace gpuens
