// Sparse matrices in SciPy's layouts.
#pragma once

#include "runtime/arrays.h"
#include "runtime/records.h"

namespace gpuens {

using Indices = std::variant<Vector<const i32>, Vector<const i64>>;

// Line i, a row (CSR) or a column (CSC), has entries indptr[i] ... indptr[i + 1] - 1 of indices and data. The names are
// SciPy's, so that its sparse arrays can be passed as they are.
template <typename Value>
struct AnySparse {
    RECORD(AnySparse, (Indices, indptr), (Indices, indices), (Vector<const Value>, data));
};

template <typename Index, typename Value>
struct Sparse {
    std::vector<i64> starts;
    const Index* places;
    const Value* values;

    i64 size() const { return (i64)starts.size() - 1; }
};

// Call a function with the matrix, whose indices are of a known type then.
template <typename Value, typename Work>
auto with_sparse(const AnySparse<Value>& of, Work&& work) {
    std::vector<i64> starts =
        std::visit([](auto indptr) { return std::vector<i64>(indptr.begin(), indptr.end()); }, of.indptr);
    return std::visit([&]<typename Index>(Vector<const Index> places) {
        return work(Sparse<Index, Value>{std::move(starts), places.data, of.data.data});
    }, of.indices);
}

}  // namespace gpuens
