// The primitives of gpuens/evidence.
#pragma once

#include <tuple>

#include "runtime/arrays.h"

namespace gpuens {

// cophenetic.cpp. kept, absorbed (merges,): leaves; sizes (G,) of the leaves. pairs (merges,): those brought together.
void pairs_merged(Vector<const i64> kept, Vector<const i64> absorbed, Vector<const f64> sizes, Vector<f64> pairs);

// pairs.cpp. Pairs of objects are added to the bins (n_bins,) of their matches, or of step copresent + matches, step = M + 1.
// rows (G, M), with a label more for missing ones; parts: starts (M + 1,) of the clusterings with it, and the first
// clustering of each chunk of a table. Turn t counts blocks t and t from the end, of 64 rows, with all later ones. counted
// (1, n_bins), or (2, n_bins) for numbers of up to 125 bits: the lowest 62 bits, and the others.
void pair_histogram(Matrix<const u32> rows, std::tuple<Vector<const i64>, Vector<const i64>> parts,
                    Vector<const i64> counts, std::tuple<i64, i64> turns, i64 step, Matrix<i64> counted);

// Counts of the pairs of rows first[i] and second[i] of codes (M, G), each once, into the bins of pairs.cpp.
void drawn_histogram(Codes<Matrix> codes, Vector<const i64> first, Vector<const i64> second, i64 step,
                     Vector<i64> counted);

}  // namespace gpuens
