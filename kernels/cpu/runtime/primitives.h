// The primitives of gpuens/runtime on the CPU, as Python calls them (bindings.cpp).
#pragma once

#include "runtime/arrays.h"

namespace gpuens {

// exponentials.cpp. powers (n,): e^exponents; bits (n,): log2 of numbers >= 0; equal bits on every processor.
void exponentials(Vector<const f64> exponents, Vector<f64> powers);
void logarithms(Vector<const f64> numbers, Vector<f64> bits);

}  // namespace gpuens
