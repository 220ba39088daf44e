// The CA-tree (gpuens/reduction/ca_tree.py). A missing label equals another missing label in a prefix, but differs from
// every label in a distance.

template <typename Code>
struct CATree {
    const Code* rows;  // (n_rows, n_clusterings), in lexicographic order: the leaves, nodes 0 ... n_rows - 1
    i64 n_rows, n_clusterings;
    // the children of an inner node z: children[starts[z - n_rows]] ... children[starts[z - n_rows + 1] - 1], in the
    // order of their first leaves
    const i64 *starts, *children;

    BOTH i64 first_child(i64 node) const { return starts[node - n_rows]; }
    BOTH i64 end_of_children(i64 node) const { return starts[node - n_rows + 1]; }

    // The number of first labels in which two leaves agree.
    BOTH i32 common_prefix(i64 a, i64 b) const {
        i32 m = 0;
        while (m < n_clusterings && rows[a * n_clusterings + m] == rows[b * n_clusterings + m]) ++m;
        return m;
    }

    BOTH i32 hamming(i64 a, i64 b) const {
        i32 apart = 0;
        for (i64 m = 0; m < n_clusterings; ++m) {
            Code label = rows[a * n_clusterings + m];
            apart += (label == MISSING(Code)) | (label != rows[b * n_clusterings + m]);
        }
        return apart;
    }

    // Write the members of Z'(z), and return their number: the children of z, of which the one with the largest
    // radius is replaced by its children until there are n_des members or only leaves. Of equal radii, that of the
    // first leaf is.
    BOTH i64 members_of(i64 z, i64 n_des, const i32* radii, const i64* first_leaf, i64* members) const {
        i64 n = 0;
        for (i64 c = first_child(z); c < end_of_children(z); ++c) members[n++] = children[c];
        while (n < n_des) {
            i64 largest = 0;
            for (i64 i = 1; i < n; ++i) {
                i32 excess = radii[members[i]] - radii[members[largest]];
                if (excess > 0 || (excess == 0 && first_leaf[members[i]] < first_leaf[members[largest]])) largest = i;
            }
            i64 wide = members[largest];
            if (wide < n_rows) break;
            members[largest] = members[--n];
            for (i64 c = first_child(wide); c < end_of_children(wide); ++c) members[n++] = children[c];
        }
        return n;
    }

    // Walk from the root to the child nearest to a leaf, again and again, until a kept node is reached. kept: 0 = not
    // in the subtree, 1 = ancestor of kept nodes, 2 = kept. Of equally near children, the first is taken.
    BOTH i64 descend(i64 root, i64 leaf, const i64* representatives, const u8* kept) const {
        i64 at = root;
        while (kept[at] != 2) {
            i64 nearest = -1;
            i32 smallest = 0;
            for (i64 c = first_child(at); c < end_of_children(at); ++c) {
                i64 child = children[c];
                if (kept[child] == 0) continue;
                i32 apart = hamming(leaf, representatives[child]);
                if (nearest < 0 || apart < smallest) {
                    nearest = child;
                    smallest = apart;
                }
            }
            at = nearest;
        }
        return at;
    }
};
