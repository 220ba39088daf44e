// The graph of objects and landmarks: its edges (gpuens/generate/landmark_graph.py), its products
// (gpuens/generate/landmark_cut.py), and the points of its objects and their labels (gpuens/generate/shares.py). Its
// weight matrix B (N, p) is never built.
//
//   nearest_landmarks  the n nearest landmarks in a point's list, nearest first; of equal ones, the smallest id first
//   landmark_products  out[a, b] = sum_i shares[i] weights[i, a] weights[i, b]    one block per landmark
//   landmark_lookups   out[i, j] = sum_s weights[i, s] T[ids[i, s], j]                         one thread per element
//   label_by_shares    labels[i] = argmax_c sum_s shares[i, s] towards[ids[i, s], c] + lift[c]; of equal ones, the
//                      smaller c                                               up to 32 lanes per object, one per center
//   add_shares         out[c, a] = sum_s sums[s, c, a] units[s]                                one thread per element
//
// ids, weights (N, K): the landmarks of each object, and the weights of its edges.
//
// variants: CODE = u8 u16 u32

#define LANES 8  // landmarks that one thread compares with its point at once

// points (d, n_points): one feature of all points side by side, the points ordered by their lists.
// order (n_points,): position `at` holds point order[at].
// of (n_points,): the list of a point. List l is listed[begins[l]] ... listed[begins[l + 1] - 1].
// landmarks (p, d). ids, squares (n_points, n_kept): the nearest landmarks and their squared distances.
// Squares are summed four features at a time, as on the CPU. One thread per point.
extern "C" __global__ void nearest_landmarks(const f32* points, const i64* order, const i64* of, const i64* listed,
                                             const i64* begins, const f32* landmarks, i64* ids, f32* squares,
                                             i64 n_points, i64 n_features, i64 n_kept) {
    FOR_EACH(at, n_points) {
        i64 i = order[at], end = begins[of[i] + 1], kept = 0;
        i64* object_ids = ids + i * n_kept;
        f32* object_squares = squares + i * n_kept;
        f32 last = 0;
        for (i64 first = begins[of[i]]; first < end; first += LANES) {
            const f32* rows[LANES];
            f32 apart[LANES];
#pragma unroll
            for (int c = 0; c < LANES; ++c) {
                rows[c] = landmarks + listed[first + c < end ? first + c : end - 1] * n_features;
                apart[c] = 0;
            }
            i64 j = 0;
            for (; j + 4 <= n_features; j += 4) {
                const f32* own_features = points + j * n_points + at;
                f32 w = own_features[0], x = own_features[n_points], y = own_features[2 * n_points],
                    z = own_features[3 * n_points];
#pragma unroll
                for (int c = 0; c < LANES; ++c) {
                    f32 e = w - rows[c][j], f = x - rows[c][j + 1], g = y - rows[c][j + 2], h = z - rows[c][j + 3];
                    apart[c] += sum_of_squares(e, f, g, h);
                }
            }
            for (; j < n_features; ++j) {
                f32 x = points[j * n_points + at];
#pragma unroll
                for (int c = 0; c < LANES; ++c) {
                    f32 e = x - rows[c][j];
                    apart[c] += e * e;
                }
            }
#pragma unroll
            for (int c = 0; c < LANES; ++c) {
                if (first + c >= end || (kept == n_kept && apart[c] >= last)) continue;  // ties keep the smaller id
                i64 place = kept < n_kept ? kept++ : kept - 1;
                for (; place > 0 && apart[c] < object_squares[place - 1]; --place) {
                    object_ids[place] = object_ids[place - 1];
                    object_squares[place] = object_squares[place - 1];
                }
                object_ids[place] = listed[first + c];
                object_squares[place] = apart[c];
                last = object_squares[kept - 1];
            }
        }
    }
}

// edges: the numbers i K + s of all edges, grouped by landmark, and objects: their objects i; the edges of landmark a
// begin at begins[a]. Grid: (p, tiles of `width` columns). Each warp of a block sums its share of the edges in a row of
// its own in shared memory, and the rows are added in the order of the warps. A warp reads 32 / K objects at once and
// adds them one after the other: the landmarks of an object are distinct, so the lanes add to different elements, and
// the order of every sum is fixed.
extern "C" __global__ void landmark_products(const i64* edges, const i64* objects, const i64* begins, const CODE* ids,
                                             const f64* weights, const f64* shares, f64* out, i64 n_landmarks,
                                             int n_neighbors, int width) {
    extern __shared__ f64 rows[];
    int warp = threadIdx.x / 32, n_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    int at_once = max(32 / n_neighbors, 1), turn = n_neighbors < 32 ? lane / n_neighbors : 0;
    i64 a = blockIdx.x, left = (i64)blockIdx.y * width, end = begins[a + 1];
    f64* row = rows + warp * width;
    for (int b = lane; b < width; b += 32) row[b] = 0.0;
    for (i64 first = begins[a] + warp * at_once; first < end; first += n_warps * at_once) {
        i64 edge = first + turn, i = 0;
        bool reads = turn < at_once && edge < end;
        f64 of_object = 0.0;
        if (reads) {
            i = objects[edge];
            of_object = shares[i] * weights[edges[edge]];
        }
        for (int before = 0; before < n_neighbors; before += 32) {
            int s = before + lane - turn * n_neighbors, b = -1;
            f64 addend = 0.0;
            if (reads && s < n_neighbors) {
                b = (int)(ids[i * n_neighbors + s] - left);
                addend = of_object * weights[i * n_neighbors + s];
            }
            int own_turn = b >= 0 && b < width ? turn : -1;
            for (int t = 0; t < at_once; ++t) {
                __syncwarp();
                if (t == own_turn) row[b] += addend;
            }
        }
    }
    __syncthreads();
    for (int b = threadIdx.x; b < width && left + b < n_landmarks; b += blockDim.x) {
        f64 sum = 0.0;
        for (int w = 0; w < n_warps; ++w) sum += rows[w * width + b];
        out[a * n_landmarks + left + b] = sum;
    }
}

extern "C" __global__ void landmark_lookups(const CODE* ids, const f64* weights, const f64* table, f64* out, i64 n_objects,
                                            i64 n_neighbors, i64 width) {
    FOR_EACH(at, n_objects * width) {
        i64 i = at / width, j = at % width;
        f64 sum = 0.0;
        for (i64 s = 0; s < n_neighbors; ++s)
            sum += weights[i * n_neighbors + s] * table[(i64)ids[i * n_neighbors + s] * width + j];
        out[at] = sum;
    }
}

// Scores are not negative. `changed` is increased by the number of labels that differ from those before, and sizes (k,) by
// the number of objects of each center. sums (K, k, p): for each s, the shares of the objects of a center in each
// landmark, added in the units of whole (N, K), so that the order in which blocks add cannot change a bit.
extern "C" __global__ void label_by_shares(const CODE* ids, const f32* shares, const f64* towards, const f64* lift,
                                           const i64* added, i64* labels, u64* changed, u64* sums, u64* sizes,
                                           i64 n_objects, i64 n_neighbors, i64 n_centers, i64 n_landmarks) {
    int lane = threadIdx.x % 32, n_lanes = 32;
    while (n_lanes / 2 >= n_centers) n_lanes /= 2;
    i64 n_warps = (i64)gridDim.x * blockDim.x / 32, warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int at_once = 32 / n_lanes, own = lane % n_lanes;
    u64 n_changed = 0;
    for (i64 first = warp * at_once; first < n_objects; first += n_warps * at_once) {
        i64 i = first + lane / n_lanes, nearest = own;
        f64 largest = -1.0;
        for (i64 c = own; c < n_centers && i < n_objects; c += n_lanes) {
            f64 sum = 0.0;
            for (i64 s = i * n_neighbors; s < (i + 1) * n_neighbors; ++s)
                sum += (f64)shares[s] * towards[ids[s] * n_centers + c];
            if (sum + lift[c] > largest) {
                largest = sum + lift[c];
                nearest = c;
            }
        }
        for (int by = n_lanes / 2; by; by /= 2) {
            f64 score = __shfl_xor_sync(ALL_LANES, largest, by);
            i64 c = __shfl_xor_sync(ALL_LANES, nearest, by);
            if (score > largest || (score == largest && c < nearest)) {
                largest = score;
                nearest = c;
            }
        }
        if (i >= n_objects) continue;
        for (i64 s = own; s < n_neighbors; s += n_lanes) {
            i64 at = i * n_neighbors + s;
            atomicAdd(&sums[(s * n_centers + nearest) * n_landmarks + ids[at]], (u64)added[at]);
        }
        if (own == 0) {
            n_changed += labels[i] != nearest;
            labels[i] = nearest;
            atomicAdd(&sizes[nearest], 1ull);
        }
    }
    if (n_changed) atomicAdd(changed, n_changed);
}

extern "C" __global__ void add_shares(const i64* sums, const f64* units, f64* out, i64 n_sums, i64 n_neighbors) {
    FOR_EACH(at, n_sums) {
        f64 sum = 0.0;
        for (i64 s = 0; s < n_neighbors; ++s) sum += (f64)sums[s * n_sums + at] * units[s];
        out[at] = sum;
    }
}
