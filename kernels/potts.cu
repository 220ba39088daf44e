// Mean field of a mixture of label rows with a Potts prior on a graph of the objects.
//
//   update_memberships   q[i, k] = 2^(s_k - max s) / sum_j 2^(s_j - max s),
//                        s_k = tau lookups[row_of[i], k] + beta sum_j w_ij q[j, k];  labels[i] = argmax_k q[i, k]
//   sum_memberships      shares[g, k] = sum over the objects i of row g of round(scale q[i, k])
//   pseudo_likelihood    derivatives of sum_i (beta sum_k q[i, k] f_ik - log2 sum_k 2^(beta f_ik)), f_ik = sum_j w_ij q[j, k]
//   sum_squares          sum over g, k of round(scale shares[g, k] residuals[g, k]^2)
//
// memberships q (N, k); the graph in CSR format: starts (N + 1,), heads and weights. Sums over neighbours are taken in the
// order of the graph, as on the CPU; sums over objects and rows are in fixed point, so that their order cannot change a bit.

// The sum over the neighbours of object i of weight times membership in class k.
__device__ inline f64 field(const i64* starts, const i32* heads, const f64* weights, const f64* memberships, i64 i, i64 k,
                            i64 width) {
    f64 sum = 0.0;
    for (i64 e = starts[i]; e < starts[i + 1]; ++e) sum += weights[e] * memberships[heads[e] * width + k];
    return sum;
}

// Objects that are not neighbours of each other; one thread per object.
extern "C" __global__ void update_memberships(const i64* objects, const i64* starts, const i32* heads,
                                              const f64* weights, const i64* row_of, const f64* lookups,
                                              const f64* tau, f64 beta, f64* memberships, i64* labels, i64 n_updated,
                                              i64 width) {
    FOR_EACH(at, n_updated) {
        i64 i = objects[at];
        f64* row = memberships + i * width;
        const f64* likely = lookups + row_of[i] * width;
        f64 largest = 0.0, total = 0.0;
        for (i64 k = 0; k < width; ++k) {
            row[k] = tau[0] * likely[k] + beta * field(starts, heads, weights, memberships, i, k, width);
            if (k == 0 || row[k] > largest) largest = row[k];
        }
        for (i64 k = 0; k < width; ++k) {
            row[k] = power_of_two(row[k] - largest);
            total += row[k];
        }
        i64 label = 0;
        for (i64 k = 0; k < width; ++k) {
            row[k] /= total;
            if (row[k] > row[label]) label = k;
        }
        labels[i] = label;
    }
}

// members (N,): the objects of row 0, of row 1, ..., which begin at starts (G + 1,). One thread per element of shares.
extern "C" __global__ void sum_memberships(const f64* memberships, const i64* members, const i64* starts, f64 scale,
                                           i64* shares, i64 n_rows, i64 width) {
    FOR_EACH(at, n_rows * width) {
        i64 g = at / width, k = at % width, sum = 0;
        for (i64 place = starts[g]; place < starts[g + 1]; ++place)
            sum += share_of(memberships[members[place] * width + k], 1.0, scale);
        shares[at] = sum;
    }
}

// One thread per object, of n that are selected; fields (n, 2 k) are scratch. Blocks add their sums to derivatives (2,).
extern "C" __global__ void pseudo_likelihood(const i64* objects, const i64* starts, const i32* heads, const f64* weights,
                                             const f64* memberships, f64 beta, f64 scale, f64* fields,
                                             u64* derivatives, i64 n_selected, i64 width) {
    extern __shared__ u64 shared[];
    SharedSums<u64> sums(shared, 2);
    sums.clear();
    __syncthreads();
    i64 slope = 0, curvature = 0;
    FOR_EACH(at, n_selected) {
        i64 i = objects[at];
        f64* row = fields + 2 * at * width;
        for (i64 k = 0; k < width; ++k) row[k] = field(starts, heads, weights, memberships, i, k, width);
        Derivatives terms = derivatives_of(memberships + i * width, row, row + width, width, beta);
        slope += in_units(terms.slope, scale);
        curvature += in_units(terms.curvature, scale);
    }
    sums.add(0, (u64)slope);
    sums.add(1, (u64)curvature);
    __syncthreads();
    sums.pour(derivatives, 0, 2);
}

// residuals, shares: n numbers each. Blocks add their sums to squares (1,).
extern "C" __global__ void sum_squares(const f64* residuals, const i64* shares, f64 scale, u64* squares, i64 n) {
    extern __shared__ u64 shared[];
    SharedSums<u64> sums(shared, 1);
    sums.clear();
    __syncthreads();
    i64 sum = 0;
    FOR_EACH(at, n) sum += in_units((f64)shares[at] * residuals[at] * residuals[at], scale);
    sums.add(0, (u64)sum);
    __syncthreads();
    sums.pour(squares, 0, 1);
}
