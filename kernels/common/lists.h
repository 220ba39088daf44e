// Lists of nearest rows, best first; a list ends at the first id below 0.

// The place in a list of its first row of another component than `name`, or -1.
BOTH i32 first_elsewhere(const i32* ids, i32 n_listed, const i64* component, i64 name) {
    for (i32 s = 0; s < n_listed && ids[s] >= 0; ++s)
        if (component[ids[s]] != name) return s;
    return -1;
}
