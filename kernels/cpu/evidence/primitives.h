// The primitives of gpuens/evidence.
#pragma once

#include "arrays.h"

namespace gpuens {

// cophenetic.cpp. kept, absorbed (merges,): leaves; sizes (G,) of the leaves. pairs (merges,): those brought together.
void pairs_merged(Vector<const i64> kept, Vector<const i64> absorbed, Vector<const f64> sizes, Vector<f64> pairs);

}  // namespace gpuens
