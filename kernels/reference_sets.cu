// Reference sets (gpuens/similarity/reference_sets.py): squared distances from some objects to all objects, and the
// nearest of these.
//
//   squared_distances   out[i, j] = sum_d (x[d, first + i] - x[d, j])^2, in the order of the features; -1 for j = first + i
//   nearest_objects     the n_kept objects with the smallest out[i, j] >= 0 in ascending order; of equal ones, the
//                       smaller j first                                                             one warp per object
//
// x (D + ROWS - 1, N): the objects side by side for each feature; numbers of the last rows are read, but not used. out
// (R, N). ids, squares (R, n_kept).

#define ROWS 4  // objects that a thread compares with one object at once

// Grid: (chunks of j, tiles of ROWS objects i). Neighbouring threads read neighbouring objects.
extern "C" __global__ void squared_distances(const f64* x, f64* out, i64 first, i64 n_rows, i64 n_objects,
                                             i64 n_features) {
    for (i64 top = (i64)blockIdx.y * ROWS; top < n_rows; top += (i64)gridDim.y * ROWS) {
        FOR_EACH(j, n_objects) {
            f64 sums[ROWS] = {};
            const f64 *rows = x + first + top, *other = x + j;
            for (i64 d = 0; d < n_features; ++d, rows += n_objects, other += n_objects) {
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    f64 apart = rows[r] - *other;
                    sums[r] += apart * apart;
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                if (top + r < n_rows) out[(top + r) * n_objects + j] = first + top + r == j ? -1.0 : sums[r];
        }
    }
}

// A list has room for 32 objects; further objects are found by passes over the row that skip all objects up to the last
// one found. The row's own object, with -1, comes before all others.
extern "C" __global__ void nearest_objects(const f64* out, i64* ids, f64* squares, i64 n_rows, i64 n_objects,
                                           i64 n_kept) {
    i64 n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 i = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n_rows; i += n_warps) {
        const f64* row = out + i * n_objects;
        f64 last_square = -1.0;
        i64 last_id = n_objects;
        for (i64 before = 0; before < n_kept; before += 32) {
            WarpList list((int)min(n_kept - before, (i64)32));
            for (i64 start = 0; start < n_objects; start += 32) {
                i64 j = start + list.lane;
                f64 square = j < n_objects ? row[j] : -1.0;
                bool comes_after = square > last_square || (square == last_square && j > last_id && j < n_objects);
                list.insert_each(list.admits(-square, j) && comes_after, j, -square, j);
            }
            last_square = -list.last_similarity();
            last_id = __shfl_sync(ALL_LANES, list.id, list.room - 1);
            if (list.lane < list.room) {
                ids[i * n_kept + before + list.lane] = list.id;
                squares[i * n_kept + before + list.lane] = -list.similarity;
            }
        }
    }
}
