// The CA-tree (Wang 2011): trees of label rows in lexicographic order.
//
//   common_prefixes   out[i] = number of leading clusterings in which rows i - 1 and i agree   one thread per pair
//   measure_nodes     radius and representative of the nodes of a level, eqs 8-11              one block per node
//   descend           the retained node in which an excluded node ends (section III-D)         one thread per node
//
// rows (G, M): labels, row by row; the clusterings in the order in which they refine the tree. CATree (common/tree.h)
// says how nodes and children are numbered.
//
// variants: CODE = u8 u16 u32

extern "C" __global__ void common_prefixes(const CODE* rows, i32* out, i64 n_rows, i64 n_clusterings) {
    CATree<CODE> tree{rows, n_rows, n_clusterings, nullptr, nullptr};
    FOR_EACH(i, n_rows) out[i] = i > 0 ? tree.common_prefix(i - 1, i) : 0;
}

// Writes the radius and the representative of each node of a level.
//
// n_des: the number of members of Z'(z).
// n_des = 0: the members are all leaves of z, whose distances are exact.
// room: the number of members for which a block has scratch memory.
// The best member has the least radius << 40 | representative, which allows 2^24 clusterings and 2^40 rows.
extern "C" __global__ void measure_nodes(const CODE* rows, const i64* starts, const i64* children, const i64* first_leaf,
                                         const i64* last_leaf, i64* representatives, i32* radii, i64* members,
                                         i64 from, i64 to, i64 n_rows, i64 n_clusterings, i64 n_des, i64 room) {
    __shared__ i64 n_members;
    __shared__ u64 best_of_warp[32];
    i64* node_members = members + blockIdx.x * room;
    CATree<CODE> tree{rows, n_rows, n_clusterings, starts, children};
    for (i64 z = from + blockIdx.x; z < to; z += gridDim.x) {
        if (threadIdx.x == 0)
            n_members = n_des > 0 ? tree.members_of(z, n_des, radii, first_leaf, node_members) : last_leaf[z] - first_leaf[z] + 1;
        __syncthreads();
        u64 best = ~0ull;
        for (i64 i = threadIdx.x; i < n_members; i += blockDim.x) {
            i64 member = n_des > 0 ? node_members[i] : first_leaf[z] + i;
            i32 reach = radii[member];
            for (i64 j = 0; j < n_members; ++j) {
                if (j == i) continue;
                i64 other = n_des > 0 ? node_members[j] : first_leaf[z] + j;
                reach = max(reach, tree.hamming(representatives[member], representatives[other]) + radii[other]);
            }
            reach = min(reach, (i32)n_clusterings);
            best = min(best, (u64)reach << 40 | (u64)representatives[member]);
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

extern "C" __global__ void descend(const CODE* rows, const i64* starts, const i64* children, const i64* representatives,
                                   const u8* kept, const i64* excluded, i64* ends, i64 n_excluded, i64 n_rows, i64 root,
                                   i64 n_clusterings) {
    CATree<CODE> tree{rows, n_rows, n_clusterings, starts, children};
    FOR_EACH(e, n_excluded) ends[e] = tree.descend(root, representatives[excluded[e]], representatives, kept);
}
