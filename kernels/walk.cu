// Steps of a random walk on the graph of the objects: the shares of labels around each object.
//
//   walk_step   out[i, c] = round((s[i, c] + sum_j w_ij s[j, c]) / (1 + sum_j w_ij)),   j the neighbours of i
//
// shares (N, C) in whole units, at most 2^15. Sums in float32, in the order of the neighbours, as on the CPU: the
// object itself first. One thread per share.

extern "C" __global__ void walk_step(const i64* starts, const i32* heads, const f32* weights, const u16* shares,
                                     u16* out,
                                     i64 n_rows, i64 width) {
    FOR_EACH(at, n_rows * width) {
        i64 i = at / width, c = at % width;
        f32 total = 1.0f, sum = (f32)shares[at];
        for (i64 e = starts[i]; e < starts[i + 1]; ++e) total += weights[e];
        for (i64 e = starts[i]; e < starts[i + 1]; ++e) sum += weights[e] * (f32)shares[heads[e] * width + c];
        out[at] = (u16)(i32)(sum / total + 0.5f);
    }
}
