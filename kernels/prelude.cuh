// Text that is put before every kernel file, after the text of common/: sums in shared memory, and a list that the
// lanes of a warp keep best first.

// A grid-stride loop over 0 ... n - 1.
#define FOR_EACH(i, n) \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

// Atomic addition and atomic replacement of an i64; both return the old value.
__device__ inline i64 add(i64* at, i64 n) { return (i64)atomicAdd((u64*)at, (u64)n); }
__device__ inline i64 replace(i64* at, i64 n) { return (i64)atomicExch((u64*)at, (u64)n); }

// Sums of whole numbers, added by the threads of a block in shared memory. A 64-bit atomic addition would be a
// compare-and-swap loop in shared memory. A u64 sum (modulo 2^64) is therefore stored as two 32-bit halves, all low
// halves before all high halves, and the overflow of a low half is carried into its high half. A u32 sum is one word.
template <typename Sum>
struct SharedSums {
    u32* low;
    i64 n;

    __device__ SharedSums(Sum* shared, i64 n_) : low((u32*)shared), n(n_) {}

    __device__ Sum operator[](i64 at) const {
        return sizeof(Sum) == sizeof(u32) ? low[at] : (Sum)((u64)low[n + at] << 32 | low[at]);
    }

    __device__ void clear() {
        for (i64 at = threadIdx.x; at < n * (i64)(sizeof(Sum) / sizeof(u32)); at += blockDim.x) low[at] = 0;
    }

    __device__ void add(i64 at, u64 value) {
        u32 addend = (u32)value, before = atomicAdd(&low[at], addend);
        if (sizeof(Sum) == sizeof(u32)) return;
        u32 high = (u32)(value >> 32) + (before + addend < before);
        if (high) atomicAdd(&low[n + at], high);
    }

    // Adds the block's sums first ... end - 1 to the sums of all blocks in global memory.
    __device__ void pour(u64* into, i64 first, i64 end) const {
        for (i64 at = first + threadIdx.x; at < end; at += blockDim.x) {
            Sum sum = (*this)[at];
            if (sum) atomicAdd(&into[at - first], (u64)sum);
        }
    }
};

#define ALL_LANES 0xffffffffu

// A list of up to 32 pairs, best first: lane s of a warp holds entry s. All 32 lanes call each function together.
struct WarpList {
    int lane, room, listed;
    i32 id;
    f64 similarity;
    u64 tie;

    __device__ WarpList(int room_)
        : lane(threadIdx.x % 32), room(room_), listed(0), id(-1), similarity(0.0), tie(NO_HASH) {}

    __device__ bool full() const { return listed == room; }
    __device__ f64 last_similarity() const { return __shfl_sync(ALL_LANES, similarity, room - 1); }
    __device__ u64 last_tie() const { return __shfl_sync(ALL_LANES, tie, room - 1); }

    // Inserts one new pair; all lanes pass the same pair.
    __device__ void insert(i32 new_id, f64 new_similarity, u64 new_tie) {
        bool before = lane < listed && comes_before(similarity, tie, new_similarity, new_tie);
        int position = __popc(__ballot_sync(ALL_LANES, before));
        i32 left_id = __shfl_up_sync(ALL_LANES, id, 1);
        f64 left_similarity = __shfl_up_sync(ALL_LANES, similarity, 1);
        u64 left_tie = __shfl_up_sync(ALL_LANES, tie, 1);
        if (position >= room) return;
        if (lane > position && lane < room) {
            id = left_id;
            similarity = left_similarity;
            tie = left_tie;
        } else if (lane == position) {
            id = new_id;
            similarity = new_similarity;
            tie = new_tie;
        }
        if (listed < room) ++listed;
    }

    // Returns, for the pair of each lane, whether the list may still take the pair.
    __device__ bool admits(f64 new_similarity, u64 new_tie) const {
        f64 last = last_similarity();
        u64 last_hash = last_tie();
        return !full() || comes_before(new_similarity, new_tie, last, last_hash);
    }

    // Inserts the pairs of the lanes where `passes` is true; returns whether there was any.
    __device__ bool insert_each(bool passes, i32 new_id, f64 new_similarity, u64 new_tie) {
        unsigned offers = __ballot_sync(ALL_LANES, passes);
        bool any = offers != 0;
#pragma unroll 1  // few turns, and each is long
        for (; offers; offers &= offers - 1) {
            int lender = __ffs(offers) - 1;
            insert(__shfl_sync(ALL_LANES, new_id, lender), __shfl_sync(ALL_LANES, new_similarity, lender),
                   __shfl_sync(ALL_LANES, new_tie, lender));
        }
        return any;
    }

    // Writes the entries of list a; entries that are free have id -1.
    __device__ void write_entries(i64 a, i32* ids, f64* similarities) const {
        if (lane >= room) return;
        ids[a * room + lane] = id;
        similarities[a * room + lane] = similarity;
    }

    // Writes the list of region a, and the bound of all pairs outside the list: the last entry of a full list,
    // otherwise `nothing`.
    __device__ void write(i64 a, i32* ids, f64* similarities, f64* bound, u64* bound_hash, f64 nothing) const {
        f64 last = last_similarity();
        u64 last_hash = last_tie();
        write_entries(a, ids, similarities);
        if (lane == 0) {
            bound[a] = full() ? last : nothing;
            bound_hash[a] = full() ? last_hash : NO_HASH;
        }
    }
};
