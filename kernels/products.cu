// Products with the incidence matrix B of rows and clusters. B is never built: a product takes one look-up per label.
//
//   row_sums       out[g]    = sum_m v[offsets[m] + codes[m, g]]              B v     one thread per row
//   row_lookups    out[g, d] = sum_m T[offsets[m] + codes[m, g], d]           B T     one thread per element
//   cluster_sums   out[c]    = sum over the rows g of cluster c of v[g]       B^T v   one block per chunk of rows
//
// codes (M, G): the labels of one clustering side by side; a missing label adds nothing. Sums over m are taken in the
// order of the clusterings, as on the CPU. Sums over rows are in fixed point (v[g] * 2^e as i64), so that the order in
// which blocks add cannot change a bit.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void row_sums(const CODE* codes, const i64* offsets, const f64* values, f64* out, i64 n_rows,
                                    i64 n_clusterings) {
    FOR_EACH(g, n_rows) {
        f64 sum = 0.0;
        for (i64 m = 0; m < n_clusterings; ++m) {
            CODE label = codes[m * n_rows + g];
            if (label != MISSING(CODE)) sum += values[offsets[m] + label];
        }
        out[g] = sum;
    }
}

extern "C" __global__ void row_lookups(const CODE* codes, const i64* offsets, const f64* table, f64* out, i64 n_rows,
                                       i64 n_clusterings, i64 width) {
    FOR_EACH(at, n_rows * width) {
        i64 g = at / width, d = at % width;
        f64 sum = 0.0;
        for (i64 m = 0; m < n_clusterings; ++m) {
            CODE label = codes[m * n_rows + g];
            if (label != MISSING(CODE)) sum += table[(offsets[m] + label) * width + d];
        }
        out[at] = sum;
    }
}

// Grid: (chunks of rows, M). in_shared: the k_m sums of a clustering fit the dynamic shared memory.
extern "C" __global__ void cluster_sums(const CODE* codes, const i64* offsets, const i64* values, u64* out, i64 n_rows,
                                        int in_shared) {
    extern __shared__ u64 shared[];
    i64 m = blockIdx.y, first = offsets[m], k = offsets[m + 1] - first;
    SharedSums<u64> sums(shared, k);
    if (in_shared) {
        sums.clear();
        __syncthreads();
    }
    FOR_EACH(g, n_rows) {
        CODE label = codes[m * n_rows + g];
        if (label == MISSING(CODE)) continue;
        if (in_shared)
            sums.add(label, (u64)values[g]);
        else
            atomicAdd(&out[first + label], (u64)values[g]);
    }
    if (in_shared) {
        __syncthreads();
        sums.pour(out + first, 0, k);
    }
}
