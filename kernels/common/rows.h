// Binary search of a label row.

// The place of a row among other rows, which are distinct and in lexicographic order; -1 if the row is not among them.
// Label m of the row is row[m * row_step]; label m of other row x is others[x * other_row + m * other_step].
template <typename Code>
BOTH i64 place_among(const Code* row, i64 row_step, const Code* sorted_rows, i64 other_row, i64 other_step, i64 n_sorted,
                     i64 n_clusterings) {
    i64 low = 0, high = n_sorted;
    while (low < high) {
        i64 middle = (low + high) / 2, m = 0;
        const Code* other = sorted_rows + middle * other_row;
        while (m < n_clusterings && row[m * row_step] == other[m * other_step]) ++m;
        if (m == n_clusterings) return middle;
        if (row[m * row_step] > other[m * other_step])
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
