// The CA-tree (Wang 2011): trees of label rows in lexicographic order.
//
//   common_prefixes   out[i] = number of leading clusterings in which rows i - 1 and i agree   one thread per pair
//   measure_nodes     radius and representative of the nodes of a level, eqs 8-11              one block per node
//   descend           the retained node in which an excluded node ends (section III-D)         one thread per node
//
// rows (G, M): labels, row by row; the clusterings in the order in which they refine the tree. A missing label equals
// another missing label in a prefix, but differs from every label in a distance. Nodes 0 ... G - 1 are the leaves. The
// children of an inner node z are children[starts[z - G]] ... children[starts[z - G + 1] - 1], in the order of their
// first leaves.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void common_prefixes(const CODE* rows, i32* out, i64 n_rows, i64 n_clusterings) {
    FOR_EACH(i, n_rows) {
        i32 m = 0;
        if (i > 0)
            while (m < n_clusterings && rows[(i - 1) * n_clusterings + m] == rows[i * n_clusterings + m]) ++m;
        out[i] = m;
    }
}

__device__ inline i32 hamming(const CODE* rows, i64 a, i64 b, i64 n_clusterings) {
    i32 apart = 0;
    for (i64 m = 0; m < n_clusterings; ++m) {
        CODE label = rows[a * n_clusterings + m];
        apart += label == MISSING(CODE) || label != rows[b * n_clusterings + m];
    }
    return apart;
}

// Writes the radius and the representative of each node of a level.
//
// n_des: the number of members of Z'(z). The members start as the children of z; then the member with the largest
//   radius is replaced by its children, until there are n_des members or only leaves. Of equal radii, the member with
//   the first leaf is replaced.
// n_des = 0: the members are all leaves of z, whose distances are exact.
// room: the number of members for which a block has scratch memory.
// The best member has the least radius << 40 | representative, which allows 2^24 clusterings and 2^40 rows.
extern "C" __global__ void measure_nodes(const CODE* rows, const i64* starts, const i64* children, const i64* first_leaf,
                                         const i64* last_leaf, i64* representatives, i32* radii, i64* members,
                                         i64 from, i64 to, i64 n_rows, i64 n_clusterings, i64 n_des, i64 room) {
    __shared__ i64 n_members;
    __shared__ u64 best_of_warp[32];
    i64* own = members + blockIdx.x * room;
    for (i64 z = from + blockIdx.x; z < to; z += gridDim.x) {
        if (threadIdx.x == 0) {
            i64 n = 0;
            if (n_des > 0) {
                for (i64 c = starts[z - n_rows]; c < starts[z - n_rows + 1]; ++c) own[n++] = children[c];
                while (n < n_des) {
                    i64 largest = 0;
                    for (i64 i = 1; i < n; ++i) {
                        i32 more = radii[own[i]] - radii[own[largest]];
                        if (more > 0 || (more == 0 && first_leaf[own[i]] < first_leaf[own[largest]])) largest = i;
                    }
                    i64 wide = own[largest];
                    if (wide < n_rows) break;
                    own[largest] = own[--n];
                    for (i64 c = starts[wide - n_rows]; c < starts[wide - n_rows + 1]; ++c) own[n++] = children[c];
                }
            } else {
                n = last_leaf[z] - first_leaf[z] + 1;
            }
            n_members = n;
        }
        __syncthreads();
        u64 best = ~0ull;
        for (i64 i = threadIdx.x; i < n_members; i += blockDim.x) {
            i64 one = n_des > 0 ? own[i] : first_leaf[z] + i;
            i32 reach = radii[one];
            for (i64 j = 0; j < n_members; ++j) {
                if (j == i) continue;
                i64 other = n_des > 0 ? own[j] : first_leaf[z] + j;
                reach = max(reach, hamming(rows, representatives[one], representatives[other], n_clusterings) +
                                       radii[other]);
            }
            reach = min(reach, (i32)n_clusterings);
            best = min(best, (u64)reach << 40 | (u64)representatives[one]);
        }
        for (int step = 16; step; step /= 2) best = min(best, __shfl_xor_sync(ALL_LANES, best, step));
        if (threadIdx.x % 32 == 0) best_of_warp[threadIdx.x / 32] = best;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < blockDim.x / 32; ++w) best = min(best, best_of_warp[w]);
            radii[z] = (i32)(best >> 40);
            representatives[z] = (i64)(best & 0xffffffffffull);
        }  // the barrier at the next node's start keeps the other threads waiting
    }
}

// Walks from the root to the nearest child, again and again, until a retained node is reached. kept: 0 = not in the
// subtree, 1 = ancestor of retained nodes, 2 = retained. Of equally near children, the first is taken.
extern "C" __global__ void descend(const CODE* rows, const i64* starts, const i64* children, const i64* representatives,
                                   const u8* kept, const i64* excluded, i64* ends, i64 n_excluded, i64 n_rows, i64 root,
                                   i64 n_clusterings) {
    FOR_EACH(e, n_excluded) {
        i64 at = root, own = representatives[excluded[e]];
        while (kept[at] != 2) {
            i64 nearest = -1;
            i32 least = 0;
            for (i64 c = starts[at - n_rows]; c < starts[at - n_rows + 1]; ++c) {
                i64 child = children[c];
                if (kept[child] == 0) continue;
                i32 apart = hamming(rows, own, representatives[child], n_clusterings);
                if (nearest < 0 || apart < least) {
                    nearest = child;
                    least = apart;
                }
            }
            at = nearest;
        }
        ends[e] = at;
    }
}
