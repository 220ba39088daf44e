"""Slow reference implementations of the definitions, as the papers print them, without any code of gpuens.

All functions take a plain integer label matrix (N, M) with -1 for missing. The clusters of a clustering are its label
values in ascending order, and clusters are numbered through from the first clustering to the last, as `gpuens.Ensemble`
does.
"""

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.cluster.hierarchy
import scipy.linalg
import scipy.stats

MISSING = -1


# --- cluster-level quantities (Huang, Wang, Lai 2018: LWEC) -----------------------------------------------------------


def clusters(labels):
    """Return [(clustering, label value, set of objects), …] in the order of the ensemble-wide cluster numbers."""
    labels = np.asarray(labels)
    return [
        (m, value, set(np.flatnonzero(labels[:, m] == value).tolist()))
        for m in range(labels.shape[1])
        for value in sorted(set(labels[:, m].tolist()) - {MISSING})
    ]


def incidence(labels):
    """Return B, (N, N_c): 1 where the object is in the cluster.

    For a missing label, the entries of that clustering are 0.
    """
    found = clusters(labels)
    b = np.zeros((len(labels), len(found)))
    for c, (_, _, members) in enumerate(found):
        b[sorted(members), c] = 1
    return b


def entropy(labels):
    """Return H(C) of every cluster (eqs 7-9, base 2). Objects missing in clustering m are left out of p(C, C_j^m)."""
    found = clusters(labels)
    h = []
    for _, _, members in found:
        total = 0.0
        for m in range(np.shape(labels)[1]):
            shared = [len(members & others) for clustering, _, others in found if clustering == m]
            total -= sum(n / sum(shared) * math.log2(n / sum(shared)) for n in shared if n)
        h.append(total)
    return np.array(h)


def eci(labels, theta):
    """Return ECI(C) = exp(-H(C) / (θ M)) of every cluster (eq 10)."""
    return np.array([math.exp(-h / (theta * np.shape(labels)[1])) for h in entropy(labels)])


def coassociation(labels, weights_per_cluster=None):
    """Return B diag(w) Bᵀ / M, (N, N), for cluster weights w: w = 1 gives eq 12, and w = ECI gives eq 15."""
    b = incidence(labels)
    w = np.ones(b.shape[1]) if weights_per_cluster is None else np.asarray(weights_per_cluster)
    return b @ np.diag(w) @ b.T / np.shape(labels)[1]


def pairs_together(labels, missing="ignore"):
    """Return (N, N) arrays about the pairs of objects.

    These are the number of clusterings that put the two together, the number of clusterings that count, and the
    ratio of the two numbers, or 0.
    """
    labels = np.asarray(labels)
    n = len(labels)
    together, of = np.zeros((n, n), dtype=int), np.zeros((n, n), dtype=int)
    for x in range(n):
        for y in range(n):
            for a, b in zip(labels[x].tolist(), labels[y].tolist(), strict=True):
                both = a != MISSING and b != MISSING
                together[x, y] += both and a == b
                of[x, y] += both or missing == "zero"
    return together, of, together / np.maximum(of, 1)


def confidence(labels, consensus, x, missing):
    """Return the confidence of x's label: its share of the sum over labels of the geometric means of their lifts.

    A lift is the frequency of a label in the cluster of x over that among all objects (``missing`` "ignore": all that
    the clustering labels), x itself being replaced by an object drawn at random.
    """
    values = sorted(set(consensus.tolist()))
    products, counted = dict.fromkeys(values, 1.0), 0
    for column in np.asarray(labels).T.tolist():
        given = [label for label, value in zip(consensus, column, strict=True) if missing == "zero" or value != MISSING]
        counted += missing == "zero" or column[x] != MISSING
        if column[x] == MISSING:
            continue
        others = [label for y, label in enumerate(consensus) if y != x and column[y] == column[x]]
        for t in values:
            share = given.count(t) / len(given)
            products[t] *= (others.count(t) + share) / (len(others) + 1) / share if share else 1.0
    pooled = {t: product ** (1 / max(counted, 1)) for t, product in products.items()}
    return pooled[consensus[x]] / sum(pooled.values())


# --- core groups ------------------------------------------------------------------------------------------------------


class CoreGroups(NamedTuple):
    rows: np.ndarray  # (G, M), the distinct label rows
    counts: np.ndarray  # (G,), number of objects in each group
    membership: np.ndarray  # (N,), the group of each object


def by_size(labels, weights=None):
    """Return labels (N,) with the clusters numbered by their weight, of equal weights by their first object; -1 stays.

    Each object weighs 1 if there are no weights.
    """
    labels = [int(label) for label in labels]
    weights = [1] * len(labels) if weights is None else list(weights)

    def rank(cluster):
        own = [x for x, label in enumerate(labels) if label == cluster]
        return -sum(weights[x] for x in own), own[0]

    order = sorted(set(labels) - {MISSING}, key=rank)
    return np.array([MISSING if label == MISSING else order.index(label) for label in labels])


def components(n, edges):
    """Return the connected components (n,) of edges, numbered by their sizes, by a union-find."""
    parent = list(range(n))

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for i, j in edges:
        a, b = sorted((root(i), root(j)))
        parent[b] = a
    return by_size([root(i) for i in range(n)])


def core_groups(labels):
    """Return the distinct rows in lexicographic order; a missing label comes after all other labels."""
    rows = [tuple(row) for row in np.asarray(labels).tolist()]
    distinct = sorted(set(rows), key=lambda row: [math.inf if label == MISSING else label for label in row])
    number = {row: g for g, row in enumerate(distinct)}
    return CoreGroups(
        np.array(distinct), np.array([rows.count(row) for row in distinct]), np.array([number[row] for row in rows])
    )


# --- linkage ----------------------------------------------------------------------------------------------------------


class Dendrogram(NamedTuple):
    merges: list  # G - 1 tuples (id_a, id_b, similarity) with id_a < id_b, in the order of the merges
    # (G - 1,), monotone heights: the minimum of the merge's similarity and the heights of its two parts
    heights: np.ndarray
    groups: CoreGroups


def splitmix64(x):
    """Apply the finaliser of SplitMix64, a bijection of the 64-bit words, to a word; return the result."""
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % 2**64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def mix(a, b):
    """Return the tie-breaker of a pair of regions: among equally similar pairs, the smallest number merges first."""
    return splitmix64(min(a, b) << 32 | max(a, b))


def greedy_average_linkage(labels, weights=None, similarity=None):
    """Merge the most similar pair of regions again and again; a region's id is the smallest core group in it.

    The similarity of A and B is Σ_c w_c n_A[c] n_B[c] / (|A| |B| M). Without weights it is one correctly rounded
    division of two integers; with weights a float64 sum in ascending order of the clusters, then one division.
    Regions similar to nothing are chained at the end, in ascending order of their ids, at similarity 0. With a
    ``similarity`` of the clusters in whole numbers, of any sign, it is n_Aᵀ S n_B / (|A| |B| M), and all pairs count.

    With weights, groups that differ in clusters of a single group alone are one region to begin with, chained in
    ascending order at the similarity that all their pairs have; rounding would decide between these.
    """
    groups = core_groups(labels)
    n_clusterings = groups.rows.shape[1]
    found = clusters(groups.rows)
    n = np.array([[int(row[m] == value) for m, value, _ in found] for row in groups.rows]) * groups.counts[:, None]
    alike = [[g] for g in range(len(n))] if weights is None else alike_but_for_own(n > 0)
    firsts = [members[0] for members in alike]
    size = np.array([groups.counts[members].sum() for members in alike])
    n, within = (n[firsts] > 0) * size[:, None], (n[firsts] > 0) & ((n > 0).sum(axis=0) > 1)
    n_groups = len(alike)
    height_of = np.full(n_groups, np.inf)  # height of the last merge in each region
    alive = np.ones(n_groups, dtype=bool)
    least = 0.0 if similarity is None else -np.inf
    # entries [a, b] with a < b, where neither region has been absorbed yet
    s, similarity = similarity, np.full((n_groups, n_groups), min(least, -1.0))

    def update(a):
        others = np.flatnonzero(alive & (np.arange(n_groups) != a))
        denominators = [int(size[a]) * int(size[b]) * n_clusterings for b in others]
        if s is not None:
            numerators = (n[others] @ s @ n[a]).tolist()
        elif weights is None:
            numerators = (n[others] @ n[a]).tolist()  # converted to Python ints, which never overflow
        else:
            numerators = np.zeros(len(others))
            for c in np.flatnonzero(n[a]):  # clusters in ascending order; clusters without objects of a would add 0.0
                numerators += weights[c] * (n[a, c] * n[others, c]).astype(np.float64)
            numerators, denominators = numerators.tolist(), map(float, denominators)
        for b, p, q in zip(others, numerators, denominators, strict=True):
            similarity[min(a, b), max(a, b)] = p / q

    def merge(a, b, s):
        merges.append((a, b, s))
        height_of[a] = min(s, height_of[a], height_of[b])
        heights.append(height_of[a])
        n[a] += n[b]
        size[a] += size[b]
        alive[b] = False
        similarity[b, :] = similarity[:, b] = min(least, -1.0)

    merges, heights = [], []
    for a in range(n_groups):
        update(a)
    while alive.sum() > 1 and similarity.max() > least:
        best = similarity.max()
        a, b = min(np.argwhere(similarity == best).tolist(), key=lambda pair: mix(*pair))
        merge(a, b, float(best))
        update(a)
    first, *rest = np.flatnonzero(alive).tolist()
    for b in rest:
        merge(first, b, 0.0)
    expanded = []
    for leaf, (a, *others) in enumerate(alike):
        if others:
            # cumsum adds the weights one after the other
            s = float(np.cumsum(weights[within[leaf]])[-1]) / n_clusterings
            s = max([s] + [height for (*parts, _), height in zip(merges, heights, strict=True) if leaf in parts])
            expanded += [((a, b, s), s) for b in others]
    expanded += [((firsts[a], firsts[b], s), h) for (a, b, s), h in zip(merges, heights, strict=True)]
    expanded.sort(key=lambda merge: -merge[1])
    return Dendrogram([merge for merge, _ in expanded], np.array([height for _, height in expanded]), groups)


def alike_but_for_own(n):
    """Return lists of groups that differ only in clusters of a single group.

    Entry (g, c) of n tells whether cluster c holds group g.
    """
    own = n.sum(axis=0) == 1
    lists = {}
    for g, row in enumerate(n):
        with_others = tuple(np.flatnonzero(row & ~own))
        has_own = bool((row & own).any())
        lists.setdefault(with_others if has_own and with_others else g, []).append(g)
    return list(lists.values())


def assert_greedy_up_to_rounding(labels, weights, merges, rtol=1e-12):
    """Assert that each merge (kept, absorbed, similarity) joins regions of the largest similarity, up to rounding.

    Where similarities are equal but for rounding, any of them may come first.
    """
    groups = core_groups(labels)
    found = clusters(groups.rows)
    n = np.array([[int(row[m] == value) for m, value, _ in found] for row in groups.rows]) * groups.counts[:, None]
    pair_sums = (n * np.asarray(weights, dtype=np.longdouble)) @ n.T
    size = groups.counts.astype(np.longdouble)
    np.fill_diagonal(pair_sums, -1)
    assert len(merges) == len(size) - 1
    for a, b, s in merges:
        similarity = pair_sums / (size[:, None] * size * groups.rows.shape[1])
        np.testing.assert_allclose(s, float(similarity[a, b]), rtol=rtol)
        assert s >= similarity.max() * (1 - rtol)
        pair_sums[a] += pair_sums[b]
        pair_sums[:, a] += pair_sums[:, b]
        size[a] += size[b]
        pair_sums[a, a] = -1
        pair_sums[b] = pair_sums[:, b] = -1


def cut(merges, n_groups, k):
    """Return the label of every group after the first G - k merges, numbered by first appearance in group order."""
    region = list(range(n_groups))
    for a, b, *_ in merges[: n_groups - k]:
        region = [region[a] if r == region[b] else r for r in region]
    order = list(dict.fromkeys(region))
    return np.array([order.index(r) for r in region])


def cut_of_large(merges, groups, k, least, similarity):
    """Find the first cut from the top with k large branches; return labels, and a mask of objects in small branches.

    ``least`` objects make a cluster; an object of a smaller branch goes to the cluster with the largest mean of the
    ``similarity`` (N, N), of equal ones to the largest. None: no cut has k such branches.
    """
    n_groups = len(merges) + 1
    for n_branches in range(1, n_groups + 1):
        branch = cut(merges, n_groups, n_branches)[groups.membership]
        members = [np.flatnonzero(branch == b) for b in range(n_branches)]
        members = [own for own in members if len(own) >= least]
        if len(members) == k:
            labels = np.full(len(branch), MISSING)
            for label, own in enumerate(members):
                labels[own] = label
            rest = labels == MISSING
            for x in np.flatnonzero(rest):
                means = [sum(map(Fraction, similarity[x, own].tolist())) / len(own) for own in members]
                labels[x] = max(range(k), key=lambda t: (means[t], len(members[t]), -t))
            return labels, rest
    return None


def large_lifetimes(merges, counts, least, leaves_made_at):
    """Go from the top through all cuts; return the lifetimes of 2, 3, … branches that have ``least`` objects or more.

    The range of distances begins and ends where their number changes, next to the first cut from the top that has so
    many. It is None for the n leaves if these are single objects (``leaves_made_at`` is None).
    """
    n_groups = len(merges) + 1
    heights = [1 - s for *_, s in merges]  # heights of the merges to n - 1, n - 2, … branches
    n_large = {
        n: sum(size >= least for size in np.bincount(cut(merges, n_groups, n), weights=counts).tolist())
        for n in range(1, n_groups + 1)
    }
    found = []
    for k in range(2, max(n_large.values()) + 1):
        first = last = next(n for n in n_large if n_large[n] == k)
        while last < n_groups and n_large[last + 1] == k:
            last += 1
        if last < n_groups:
            made_at = heights[n_groups - last - 1]
        else:
            made_at = None if leaves_made_at is None else min(leaves_made_at, heights[0])
        found.append(None if made_at is None else heights[n_groups - first] - made_at)
    return found


def full_scipy(labels, weights=None, method="average"):
    """Return SciPy's linkage of all N objects by the distances 1 - co-association.

    SciPy chooses among equal distances.
    """
    s = coassociation(labels, weights)
    return scipy.cluster.hierarchy.linkage(1 - s[np.triu_indices(len(s), 1)], method)


def full_scipy_average(labels, weights=None):
    """Return SciPy's average linkage of all N objects."""
    return full_scipy(labels, weights, "average")


def complete_linkage_heights(labels, weights=None):
    """Return the similarities, descending, at which complete linkage joins all N objects."""
    return 1 - full_scipy(labels, weights, "complete")[:, 2]


def single_linkage_heights(labels, weights=None):
    """Return the weights, descending, of a maximum spanning tree of all N objects (Prim)."""
    s = coassociation(labels, weights)
    to_tree = s[0].copy()
    to_tree[0] = -np.inf
    outside = np.arange(len(s)) > 0
    heights = []
    while outside.any():
        nearest = int(np.argmax(np.where(outside, to_tree, -np.inf)))
        heights.append(to_tree[nearest])
        outside[nearest] = False
        to_tree = np.maximum(to_tree, s[nearest])
    return np.sort(heights)[::-1]


# --- transfer cut (Li, Wu, Chang 2012) --------------------------------------------------------------------------------


def transfer_cut_embedding(labels, weights, k):
    """Return the (N, k) embedding before k-means, rows of length 1, and the k leading eigenvalues, descending.

    X = B diag(w) (``weights=None`` is w = 1: HBGF), D_X = row sums, W = Xᵀ D_X⁻¹ X, D = row sums of W; V are the k
    leading eigenvectors of D^-½ W D^-½, and the objects' rows D_X⁻¹ X D^-½ V are scaled to length 1. Eigenvectors
    have no sign, and where eigenvalues repeat no direction of their own: compare inner products of rows. An object
    outside the k eigenvectors (more separate parts than k) keeps its row of zeros.
    """
    b = incidence(labels)
    x = b @ np.diag(np.ones(b.shape[1]) if weights is None else np.asarray(weights))
    d_x = np.diag(x.sum(axis=1))
    w = x.T @ np.linalg.inv(d_x) @ x
    d_half = np.diag(1 / np.sqrt(w.sum(axis=1)))
    values, vectors = scipy.linalg.eigh(d_half @ w @ d_half)
    leading = np.argsort(values)[::-1][:k]
    embedding = np.linalg.inv(d_x) @ x @ d_half @ vectors[:, leading]
    length = np.linalg.norm(embedding, axis=1, keepdims=True)
    return embedding / np.where(length > 0, length, 1), values[leading]


# --- coupled clustering ensemble (Wang, Chi, She, Cao, Stantic 2018: CCE) ---------------------------------------------

# Table II: twelve objects and four clusterings, whose clusters 1 2 | A B | X Y | α β are numbered through here
TABLE_TWO = np.array([list(map("12ABXYαβ".index, column)) for column in (
    "222212211121", "BAABAABBBABB", "XXYXXYYYYYYY", "βαββββααβααα"
)]).T  # fmt: skip


def clusters_of(labels, m):
    """Return the set of objects g_m(v) of every cluster v of clustering m."""
    return [objects for clustering, _, objects in clusters(labels) if clustering == m]


def iacsc(labels):
    """Return a matrix (k_j, k_j) for each clustering: |v| |v'| / (|v| + |v'| + |v| |v'|) (eq 2)."""
    matrices = []
    for j in range(np.shape(labels)[1]):
        sizes = [len(objects) for objects in clusters_of(labels, j)]
        matrices.append(np.array([[a * b / (a + b + a * b) for b in sizes] for a in sizes]))
    return matrices


def iersc(labels, j, k):
    """Return (k_j, k_j): Σ_u min(P(u | v), P(u | v')) over the clusters u of clustering k (eqs 1, 3).

    P(u | v) = |u ∩ v| / |v|; objects of v that are missing in clustering k count in the denominator.
    """
    p = [[len(u & v) / len(v) for u in clusters_of(labels, k)] for v in clusters_of(labels, j)]
    return np.array([[sum(map(min, a, b)) for b in p] for a in p])


def iecsc(labels, weights=None):
    """Return (k_j, k_j) for each clustering j: Σ_k λ_k IeRSC over all clusterings k ≠ j (eq 4), whose λ_k sum to 1."""
    n_clusterings = np.shape(labels)[1]
    weights = [1] * n_clusterings if weights is None else list(weights)
    matrices = []
    for j in range(n_clusterings):
        others = [k for k in range(n_clusterings) if k != j]
        total = sum(weights[k] for k in others)
        matrices.append(sum(weights[k] / total * iersc(labels, j, k) for k in others))
    return matrices


def ccsc(labels, weights=None):
    """Return a matrix (k_j, k_j) for each clustering: IaCSC · IeCSC, entry by entry (eq 5)."""
    return [a * b for a, b in zip(iacsc(labels), iecsc(labels, weights), strict=True)]


def look_ups(labels):
    """Return a dict for every object: {clustering: position of the object's cluster}. Missing labels have no entry."""
    found = [{} for _ in range(len(labels))]
    for m in range(np.shape(labels)[1]):
        for position, objects in enumerate(clusters_of(labels, m)):
            for x in objects:
                found[x][m] = position
    return found


def iaoso(labels, weights=None):
    """Return (N, N): the mean over the clusterings of the CCSC of the two objects' clusters (eq 6).

    A missing label counts as 0.
    """
    matrices, of = ccsc(labels, weights), look_ups(labels)
    n, n_clusterings = np.shape(labels)
    s = np.zeros((n, n))
    for x in range(n):
        for y in range(n):
            both = [m for m in of[x] if m in of[y]]
            s[x, y] = sum(matrices[m][of[x][m], of[y][m]] for m in both) / n_clusterings
    return s


def mean_over_pairs(similarity):
    """Return the mean similarity over all pairs of distinct objects, rounded once.

    So equal similarities are their own mean.
    """
    pairs = [Fraction(similarity[x, y]) for x in range(len(similarity)) for y in range(x)]
    return float(sum(pairs) / len(pairs))


def neighborhoods(similarity, theta, among=None):
    """Return the set of θ-neighbours of every object (eq 8), without the object itself."""
    among = range(len(similarity)) if among is None else among
    return [{z for z in among if z != x and similarity[x, z] >= theta} for x in range(len(similarity))]


def ieoso(similarity, theta, among=None):
    """Return (N, N): the share of the m objects that are neighbours of both (eq 9); on the diagonal, |N(x)| / m.

    ``among``: the objects of a sample, the only ones that can be common neighbours; m is their number.
    """
    n, m = len(similarity), len(similarity if among is None else among)
    of = neighborhoods(similarity, theta, among)
    return np.array([[len(of[x] & of[y]) / m for y in range(n)] for x in range(n)])


def ccoso(labels, theta=None, weights=None):
    """Return (N, N): IeOSO of the IaOSO (eq 10); θ is the mean IaOSO over pairs of distinct objects if not given."""
    s = iaoso(labels, weights)
    return ieoso(s, mean_over_pairs(s) if theta is None else theta)


def object_label_space(labels, weights=None):
    """Return OL, (N, N_c): CCSC of the object's cluster with each cluster, minus the column mean (eq 20).

    Missing labels give 0.
    """
    matrices, of = ccsc(labels, weights), look_ups(labels)
    ol = [[np.zeros(len(matrix)) for matrix in matrices] for _ in of]
    for x, positions in enumerate(of):
        for m, position in positions.items():
            ol[x][m] = matrices[m][position] - matrices[m].mean(axis=0)
    return np.array([np.concatenate(parts) for parts in ol])


def cluster_similarity(labels, similarity):
    """Return (N_c, N_c): the mean over all pairs of an object of one cluster and an object of the other (eq 24).

    An object of both is paired with itself too, as the equation's sum has it.
    """
    found = [objects for _, _, objects in clusters(labels)]
    return np.array([[np.mean([similarity[x, y] for x in c for y in d]) for d in found] for c in found])


def association(labels, meta_clusters):
    """Return (N, k): the share of each meta-cluster's clusters that hold the object (Strehl, Ghosh 2002: MCLA).

    ``meta_clusters`` (N_c,) is the meta-cluster, 0 … k - 1, of every cluster.
    """
    found = [objects for _, _, objects in clusters(labels)]
    share = np.zeros((len(labels), max(meta_clusters) + 1))
    for t in range(share.shape[1]):
        collapsed = [objects for objects, meta in zip(found, meta_clusters, strict=True) if meta == t]
        for x in range(len(labels)):
            share[x, t] = sum(x in objects for objects in collapsed) / len(collapsed)
    return share


def greedy_rock(labels, similarity, theta):
    """Merge all core groups as ROCK does (Guha, Rastogi, Shim 2000); return (id_a, id_b, goodness) of each merge.

    goodness = link / ((n_A + n_B)^p - n_A^p - n_B^p) with p = 1 + 2 (1 - θ) / (1 + θ), and link the sum over object
    pairs across A and B of their common neighbours (eqs 10, 23: m CCOSO, an integer). The best pair goes first, equal
    ones by `mix`; a region's id is the smallest core group in it. Cut the merges at k by `cut`.
    """
    of = neighborhoods(similarity, theta)
    membership = core_groups(labels).membership
    regions = {g: np.flatnonzero(membership == g).tolist() for g in range(max(membership) + 1)}
    p = 1 + 2 * (1 - theta) / (1 + theta)

    def goodness(a, b):
        link = sum(len(of[x] & of[y]) for x in regions[a] for y in regions[b])
        n_a, n_b = float(len(regions[a])), float(len(regions[b]))
        return link / ((n_a + n_b) ** p - n_a**p - n_b**p) if link else 0.0

    good = {(a, b): goodness(a, b) for a in regions for b in regions if a < b}
    merges = []
    while good:
        a, b = min(good, key=lambda pair: (-good[pair], mix(*pair)))
        merges.append((a, b, good[a, b]))
        regions[a] += regions.pop(b)
        good = {pair: value for pair, value in good.items() if b not in pair}
        good.update({pair: goodness(*pair) for pair in good if a in pair})
    return merges


def similarity_to_clusters(similarity, sample, sample_labels, mean=False):
    """Return (N, k): each object's sum or mean of similarities to the sampled members of each cluster (§5.3).

    For CCOSO pass `ieoso` of all objects with ``among=sample``. The rows of the sampled objects count themselves.
    """
    totals = np.zeros((len(similarity), max(sample_labels) + 1))
    for x in range(len(similarity)):
        for t in range(totals.shape[1]):
            of_t = [similarity[x, y] for y, label in zip(sample, sample_labels, strict=True) if label == t]
            totals[x, t] = sum(of_t) / (len(of_t) if mean else 1)
    return totals


# --- mapping coefficients (Cao, Chang, Zhao 2020: ECRMC) --------------------------------------------------------------


def reference_set(x, i, n_neighbors):
    """Return [(object, weight λ), …] of the objects nearest to object i; the lower number wins ties (eqs 4-6).

    Objects that all lie on i, and a single one, weigh 1: only the shares of the weights count.
    """
    squares = {j: sum((float(a) - float(b)) ** 2 for a, b in zip(x[i], x[j], strict=True)) for j in range(len(x))}
    nearest = sorted((squares[j], j) for j in squares if j != i)[:n_neighbors]
    total = sum(math.sqrt(square) for square, _ in nearest)
    if total == 0 or len(nearest) == 1:
        return [(j, 1.0) for _, j in nearest]
    return [(j, 1 - math.sqrt(square) / total) for square, j in nearest]


def mapping_coefficients(labels, x, n_neighbors):
    """Return P^r, (N, N_c): eq 10 with p_jl, then eq 11 within each clustering; 0 where no reference has a label."""
    b, found = incidence(labels), clusters(labels)
    p = np.zeros_like(b)
    for i in range(len(b)):
        for j, weight in reference_set(x, i, n_neighbors):
            p[i] += weight * b[j]
    for m in range(np.shape(labels)[1]):
        own = [c for c, (clustering, _, _) in enumerate(found) if clustering == m]
        total = p[:, own].sum(axis=1, keepdims=True)
        p[:, own] = np.divide(p[:, own], total, out=np.zeros_like(p[:, own]), where=total > 0)
    return p


def spearman(columns, counts=None):
    """Return Spearman correlations of all pairs of columns (eq 15); ties get average ranks, and the diagonal is 1.

    Values that rounding alone parts (by less than 1e-12) tie. What does not vary correlates with nothing else: 0.
    Row i stands for counts[i] objects.
    """
    columns = np.repeat(columns, 1 if counts is None else counts, axis=0)
    ranks = scipy.stats.rankdata(np.round(columns, 12), axis=0)
    s = np.eye(ranks.shape[1])
    for c in range(len(s)):
        for d in range(c):
            u, v = ranks[:, c] - ranks[:, c].mean(), ranks[:, d] - ranks[:, d].mean()
            if (u != 0).any() and (v != 0).any():
                s[c, d] = s[d, c] = (u * v).sum() / math.sqrt((u * u).sum() * (v * v).sum())
    return s


def revised_coassociation(labels, similarity):
    """Return B S Bᵀ / M, (N, N): eq 17. Its second T(i, Q_h) is a misprint for T(j, Q_h)."""
    b = incidence(labels)
    return b @ similarity @ b.T / np.shape(labels)[1]


def average_linkage_of_all_pairs(labels, similarity):
    """Start from groups; always merge the regions with the largest mean similarity of their object pairs (eq 21).

    `mix` breaks ties. A region's id is the smallest core group in it. Similarities may be negative.
    """
    groups = core_groups(labels)
    regions = {g: np.flatnonzero(groups.membership == g) for g in range(len(groups.rows))}
    mean = {(a, b): similarity[np.ix_(regions[a], regions[b])].mean() for a in regions for b in regions if a < b}
    merges, heights, height_of = [], [], dict.fromkeys(regions, np.inf)
    while mean:
        a, b = min(mean, key=lambda pair: (-mean[pair], mix(*pair)))
        merges.append((a, b, mean[a, b]))
        height_of[a] = min(mean[a, b], height_of[a], height_of[b])
        heights.append(height_of[a])
        regions[a] = np.concatenate([regions[a], regions.pop(b)])
        mean = {pair: value for pair, value in mean.items() if b not in pair}
        mean.update({pair: similarity[np.ix_(regions[pair[0]], regions[pair[1]])].mean() for pair in mean if a in pair})
    return Dendrogram(merges, np.array(heights), groups)


def rank_of_region(name):
    """Apply the finaliser of MurmurHash3, a bijection of the 32-bit words, to a region's id."""
    name = (name ^ name >> 16) * 0x85EBCA6B % 2**32
    name = (name ^ name >> 13) * 0xC2B2AE35 % 2**32
    return name ^ name >> 16


def contiguous_average_linkage(sums, counts, edges):
    """Merge the adjacent regions with the largest mean similarity over all pairs of objects, until none are adjacent.

    ``sums`` (G, G) are the sums of the similarities of the objects of any two leaves, in whole numbers, and ``counts``
    (G,) the numbers of objects. Of equally similar pairs, that with the smaller (larger rank, smaller rank) merges
    first. Returns the merges (kept, absorbed, similarity).
    """
    regions, merges = {g: [g] for g in range(len(counts))}, []

    def place(pair):
        a, b = (regions[g] for g in pair)
        similarity = int(sums[np.ix_(a, b)].sum()) / int(counts[a].sum() * counts[b].sum())
        return -similarity, *sorted(map(rank_of_region, pair), reverse=True)

    places = {pair: place(pair) for pair in map(frozenset, edges)}
    while places:
        best = min(places, key=places.get)
        a, b = sorted(best)
        merges.append((a, b, -places.pop(best)[0]))
        regions[a] += regions.pop(b)
        neighbors = {g for pair in places if pair & best for g in pair - best}
        places = {pair: value for pair, value in places.items() if not pair & best}
        places.update((pair, place(pair)) for pair in (frozenset((a, g)) for g in neighbors))
    return merges


def must_groups(n, must):
    """Return a list with the smallest object of each object's must-link group."""
    group = list(range(n))
    for i, j in must:
        low, high = sorted((group[i], group[j]))
        group = [low if g == high else g for g in group]
    return group


def constrained_leaves(labels, must, cannot):
    """Return lists of objects: the must-link groups of linked objects, and other objects with equal labels.

    The leaves have names: the places of their first rows in the sorted rows, of which linked objects have own ones.
    """
    group, linked = must_groups(len(labels), must), {i for pair in [*must, *cannot] for i in pair}
    rows = [
        (tuple(np.where(row < 0, 2**40, row).tolist()), group[i] if i in linked else -1) for i, row in enumerate(labels)
    ]
    place = {row: number for number, row in enumerate(sorted(set(rows)))}
    leaves = {}
    for i, (row, of_group) in enumerate(rows):
        leaves.setdefault(of_group if of_group >= 0 else row, []).append(i)
    return {min(place[rows[i]] for i in objects): objects for objects in leaves.values()}


def constrained_average_linkage(together, leaves, cannot, n_clusterings):
    """Merge the most similar pair of clusters without a cannot-linked pair again and again, until none is similar.

    ``together`` (N, N) are the numbers of clusterings that put two objects together, ``leaves`` lists of objects by
    their names. At similarity 0, clusters in the order of their names join the first one that cannot-links allow.
    Returns the merges (kept, absorbed, similarity), and the names of the clusters that are left.
    """
    regions, merges = dict(leaves), []

    def allowed(a, b):
        return not any((i in a and j in b) or (j in a and i in b) for i, j in cannot)

    def place(a, b):
        common = int(together[np.ix_(regions[a], regions[b])].sum()) if allowed(regions[a], regions[b]) else 0
        return -common / (len(regions[a]) * len(regions[b]) * n_clusterings), mix(a, b)

    places = {(a, b): place(a, b) for a in regions for b in regions if a < b}
    while places and min(places.values())[0] < 0:
        a, b = min(places, key=places.get)
        merges.append((a, b, -places[a, b][0]))
        regions[a] = regions[a] + regions.pop(b)
        places = {pair: value for pair, value in places.items() if b not in pair}
        places.update({pair: place(*pair) for pair in places if a in pair})
    left = []
    for b in sorted(regions):
        a = next((a for a in left if allowed(regions[a], regions[b])), None)
        if a is None:
            left.append(b)
        else:
            merges.append((a, b, 0.0))
            regions[a] = regions[a] + regions.pop(b)
    return merges, left


def observed_sums(labels, weights=None):
    """Sum for each pair the weights of the clusterings that put it together, and of those that label both objects.

    Sums of weights of few binary places are exact.
    """
    labels = np.asarray(labels)
    lam = np.ones(labels.shape[1]) if weights is None else np.asarray(weights)
    together, both = np.zeros((2, len(labels), len(labels)))
    for x in range(len(labels)):
        for y in range(len(labels)):
            for m, (a, b) in enumerate(zip(labels[x].tolist(), labels[y].tolist(), strict=True)):
                both[x, y] += lam[m] * (a != MISSING and b != MISSING)
                together[x, y] += lam[m] * (a != MISSING and a == b)
    return together, both


def average_linkage_of_observed_pairs(labels, weights=None, *, in_rounds=False):
    """Start from groups; always merge the two regions with the largest Σ together / Σ both over their pairs of objects.

    0 where no clustering labels both of any pair. Equal ones by `mix`; a region's id is the smallest core group in it,
    and regions similar to none are chained at the end. ``in_rounds``: in a round all that are each other's nearest
    merge, and the nearest of a region stays until either has merged. That is the same where all pairs are labelled by
    some clustering; else a union can be as similar as its part and have a better name.
    """
    groups = core_groups(labels)
    of = np.equal.outer(np.arange(len(groups.rows)), groups.membership).astype(float)
    together, both = (of @ sums @ of.T for sums in observed_sums(labels, weights))
    regions, merges, heights = list(range(len(of))), [], []
    height_of = dict.fromkeys(regions, np.inf)
    similarity = {(a, b): float(together[a, b] / both[a, b]) if both[a, b] else 0.0 for a in regions for b in regions}

    nearest = {}

    def best_pairs():
        for a in regions if len(regions) > 1 else []:
            if a not in nearest:
                nearest[a] = min((-similarity[a, b], mix(a, b), b) for b in regions if b != a)[-1]
        pairs = [(a, b) for a, b in nearest.items() if nearest[b] == a < b and similarity[a, b] > 0]
        return pairs if in_rounds else sorted(pairs, key=lambda pair: (-similarity[pair], mix(*pair)))[:1]

    while pairs := best_pairs():
        merged = {region for pair in pairs for region in pair}
        nearest = {a: b for a, b in nearest.items() if in_rounds and not {a, b} & merged}
        for a, b in pairs:
            merges.append((a, b, similarity[a, b]))
            height_of[a] = min(similarity[a, b], height_of[a], height_of[b])
            heights.append(height_of[a])
            for sums in (together, both):
                sums[a] += sums[b]
                sums[:, a] += sums[:, b]
            regions.remove(b)
            for c in regions:
                similarity[a, c] = similarity[c, a] = float(together[a, c] / both[a, c]) if both[a, c] else 0.0
    merges += [(regions[0], b, 0.0) for b in regions[1:]]
    return Dendrogram(merges, np.array(heights + [0.0] * (len(regions) - 1)), groups)


def assert_greedy_over_observed_pairs(labels, weights, merges):
    """Assert that each merge (kept, absorbed, similarity) joins a pair of regions of the largest similarity."""
    groups = core_groups(labels)
    of = np.equal.outer(np.arange(len(groups.rows)), groups.membership).astype(float)
    together, both = (of @ sums @ of.T for sums in observed_sums(labels, weights))
    alive = np.ones(len(of), dtype=bool)
    for a, b, s in merges:
        similarity = np.divide(together, both, out=np.zeros_like(both), where=both > 0)
        np.fill_diagonal(similarity, -1)
        assert s == similarity[a, b] == similarity[np.ix_(alive, alive)].max()
        for sums in (together, both):
            sums[a] += sums[b]
            sums[:, a] += sums[:, b]
        alive[b] = False


# --- CA-tree (Wang 2011) ----------------------------------------------------------------------------------------------


class Node:
    """A node of the CA-tree: its objects, the labels they share, its children, its radius and its representative."""

    def __init__(self, objects, parent=None):
        self.objects, self.parent, self.children = objects, parent, []
        self.radius, self.representative = 0, None  # radius, and representative (a label row, set later)

    def leaves(self):
        return [leaf for child in self.children for leaf in child.leaves()] if self.children else [self]


def hamming(a, b):
    """Return the number of clusterings in which two label rows differ; a missing label differs from every label."""
    return sum(x != y or x == -1 for x, y in zip(a, b, strict=True))


def ca_tree(labels, order, n_des=32):
    """Grow the tree clustering by clustering in the given order (§III-B), then apply eqs 8-11 from the leaves upwards.

    Children come by label, a missing one last. Where the largest members of Z' tie, the one whose first leaf comes
    first is replaced; where representatives tie, the first leaf's row wins. ``n_des=None``: Z' is all leaves (eqs 5-7).
    """
    labels = np.asarray(labels)
    root = Node(list(range(len(labels))))
    leaves = [root]
    for m in order:
        grown = []
        for leaf in leaves:
            found = sorted({int(labels[x, m]) for x in leaf.objects}, key=lambda v: (v == -1, v))
            if len(found) == 1:
                grown.append(leaf)
                continue
            leaf.children = [Node([x for x in leaf.objects if labels[x, m] == v], leaf) for v in found]
            grown += leaf.children
        leaves = grown
    place = {id(leaf): i for i, leaf in enumerate(root.leaves())}
    for leaf in leaves:
        leaf.representative = (place[id(leaf)], tuple(labels[leaf.objects[0]].tolist()))

    def first(node):
        return place[id(node.leaves()[0])]

    def measure(node):
        for child in node.children:
            measure(child)
        if not node.children:
            return
        members = node.leaves() if n_des is None else list(node.children)
        while n_des is not None and len(members) < n_des and any(z.children for z in members):
            largest = min((z for z in members if z.children), key=lambda z: (-z.radius, first(z)))
            members.remove(largest)
            members += largest.children

        def reach(z):
            apart = [0 if y is z else hamming(z.representative[1], y.representative[1]) for y in members]
            return min(labels.shape[1], max(d + y.radius for d, y in zip(apart, members, strict=True)))

        node.radius, node.representative = min((reach(z), z.representative) for z in members)

    measure(root)
    return root


def cut_ca_tree(root, tau):
    """Return the topmost nodes with a radius of at most τ (eq 15)."""
    return [root] if root.radius <= tau else [z for child in root.children for z in cut_ca_tree(child, tau)]


def reduce_ca_tree(root, tau, gamma, n_objects):
    """Return [(node, objects that get its label)] of the largest nodes, with a share γ.

    Other objects descend (§III-D).
    """
    nodes = cut_ca_tree(root, tau)
    by_size = sorted(nodes, key=lambda z: (-len(z.objects), z.leaves()[0].representative[0]))
    held, kept = 0, []
    for z in by_size:
        if held >= gamma * n_objects:
            break
        kept.append(z)
        held += len(z.objects)
    inner = set()
    for z in kept:
        while z is not None:
            inner.add(id(z))
            z = z.parent
    found = {id(z): (z, list(z.objects)) for z in kept}
    for z in nodes:
        if id(z) in found:
            continue
        at = root
        while id(at) not in found:
            at = min((c for c in at.children if id(c) in inner),
                     key=lambda c: hamming(z.representative[1], c.representative[1]))  # fmt: skip
        found[id(at)][1].extend(z.objects)
    return [found[id(z)] for z in kept]


# --- soft correspondence (Long, Zhang, Yu 2005: SCEC) -----------------------------------------------------------------


def membership_matrices(labels):
    """Return M^(h) (N, k_h) of every clustering, 0/1; a missing label is the uniform row 1 / k_h (§4)."""
    matrices = []
    for m in range(np.shape(labels)[1]):
        found = clusters_of(labels, m)
        rows = [[float(x in objects) for objects in found] for x in range(len(labels))]
        matrices.append(np.array([row if any(row) else [1 / len(found)] * len(found) for row in rows]))
    return matrices


def scec_objective(m, matrices, s, alphas, betas):
    """Return f(M, S^(1), …) (eq 3), each clustering with its own α and β."""
    total, k = 0.0, m.shape[1]
    for a, s_h, alpha, beta in zip(matrices, s, alphas, betas, strict=True):
        k_h = len(s_h)
        total += np.linalg.norm(m - a @ s_h) ** 2
        total -= alpha * np.linalg.norm(s_h - np.ones((k_h, k_h)) @ s_h / k_h) ** 2
        total += beta * np.linalg.norm(s_h @ np.ones((k, k)) - np.ones((k_h, k))) ** 2
    return total


def scec_correspondence(m, a, s, alpha, beta):
    """Return S^(h) after one step of eq 10."""
    k_h, k = s.shape
    d = a.T @ a @ s - alpha * s + alpha / k_h * np.ones((k_h, k_h)) @ s + beta * k * s @ np.ones((k, k))
    return s * (a.T @ m + beta * k * np.ones((k_h, k))) / d


def scec_membership(matrices, s):
    """Return M = (1 / r) Σ M^(h) S^(h) (eq 6)."""
    return sum(a @ s_h for a, s_h in zip(matrices, s, strict=True)) / len(matrices)


def pairs_by_matches(labels, counts, missing):
    """Return {(clusterings that label both, matches): pairs of objects}, for rows that stand for ``counts`` objects."""
    labels, found = np.asarray(labels), {}
    ignore = missing == "ignore" and (labels == MISSING).any()
    counts = [int(n) for n in counts]
    known = labels != MISSING
    for g in range(len(labels)):
        both = known[g:] & known[g]
        matches = ((labels[g:] == labels[g]) & both).sum(axis=1).tolist()
        copresent = both.sum(axis=1).tolist() if ignore else [labels.shape[1]] * len(matches)
        for h, at in enumerate(zip(copresent, matches, strict=True), g):
            n_pairs = counts[g] * (counts[g] - 1) // 2 if h == g else counts[g] * counts[h]
            found[at] = found.get(at, 0) + n_pairs
    return {at: n_pairs for at, n_pairs in found.items() if n_pairs}


def pairs_together_by_chance(labels, counts):
    """Return the mean pairs of objects that two clusterings put together, and their expected mean under permutations.

    Only objects that both clusterings label count.
    """
    labels = np.asarray(labels)

    def n_pairs(*columns):
        sizes = {}
        for *of, n in zip(*columns, counts.tolist(), strict=True):
            sizes[tuple(of)] = sizes.get(tuple(of), 0) + n
        return sum(n * (n - 1) // 2 for of, n in sizes.items() if MISSING not in of)

    together, expected, two = [], [], list(itertools.combinations(labels.T.tolist(), 2))
    for a, b in two:
        common_a = [x if y != MISSING else MISSING for x, y in zip(a, b, strict=True)]
        common_b = [y if x != MISSING else MISSING for x, y in zip(a, b, strict=True)]
        anyone = [0 if MISSING not in (x, y) else MISSING for x, y in zip(a, b, strict=True)]
        together.append(n_pairs(a, b))
        expected.append(Fraction(n_pairs(common_a) * n_pairs(common_b), n_pairs(anyone)))
    return sum(together) / len(two), float(sum(expected) / len(two))


# --- links of clusters (Iam-On 2011: LCE; Huang 2015: WEAC, GP-MGLA; Huang 2016: PTA; Huang 2018: ECPCS) --------------


def jaccard(labels):
    """Return |c ∩ d| / |c ∪ d| of all clusters of all clusterings, (N_c, N_c)."""
    members = [found[2] for found in clusters(labels)]
    return np.array([[len(c & d) / len(c | d) for d in members] for c in members])


def jaccard_of_objects(labels):
    """Return the mean of |c ∩ d| / |c ∪ d| over a cluster c of x and a cluster d of y, (N, N); missing labels add 0."""
    labels = np.asarray(labels)
    members = {(m, value): found for m, value, found in clusters(labels)}
    columns = range(labels.shape[1])

    def similarity(x, y):
        terms = []
        for m in columns:
            for h in columns:
                if MISSING not in (labels[x, m], labels[y, h]):
                    c, d = members[m, labels[x, m]], members[h, labels[y, h]]
                    terms.append(len(c & d) / len(c | d))
        return sum(terms) / len(columns) ** 2

    return np.array([[similarity(x, y) for y in range(len(labels))] for x in range(len(labels))])


def _without_diagonal(matrix):
    return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)


def cts(labels, decay=0.8):
    """Return the connected-triple similarity of all objects, (N, N)."""
    labels = np.asarray(labels)
    w, found = _without_diagonal(jaccard(labels)), clusters(labels)
    triples = {
        (c, d): sum(min(w[c, t], w[d, t]) for t in range(len(w)))
        for c in range(len(w))
        for d in range(len(w))
        if c != d and found[c][0] == found[d][0]
    }
    largest = max(triples.values(), default=0.0)
    number = {(m, value): c for c, (m, value, _) in enumerate(found)}
    s = np.eye(len(labels))
    for x in range(len(labels)):
        for y in range(len(labels)):
            terms = []
            for m in range(labels.shape[1]):
                if MISSING in (labels[x, m], labels[y, m]):
                    continue
                c, d = number[m, labels[x, m]], number[m, labels[y, m]]
                terms.append(1.0 if c == d else decay * triples[c, d] / largest if largest else 0.0)
            if x != y:
                s[x, y] = sum(terms) / labels.shape[1]
    return s


def asrs(labels, decay=0.8):
    """Return the approximate SimRank-based similarity of all objects, (N, N)."""
    labels = np.asarray(labels)
    w = _without_diagonal(jaccard(labels))
    neighbors = [int((row > 0).sum()) for row in w]
    cs = np.zeros(w.shape)
    for c in range(len(w)):
        for d in range(len(w)):
            if c != d and neighbors[c] and neighbors[d]:
                cs[c, d] = sum(w[c, t] * w[d, t] for t in range(len(w))) / (neighbors[c] * neighbors[d])
    if cs.max() > 0:
        cs /= cs.max()
    np.fill_diagonal(cs, 1.0)
    number = {(m, value): c for c, (m, value, _) in enumerate(clusters(labels))}
    of = [[number[m, value] for m, value in enumerate(row) if value != MISSING] for row in labels.tolist()]
    s = np.eye(len(labels))
    for x in range(len(labels)):
        for y in range(len(labels)):
            if x != y:
                terms = [1.0 if cs[c, d] > 1 - 1e-12 else decay * cs[c, d] for c in of[x] for d in of[y]]
                s[x, y] = sum(terms) / labels.shape[1] ** 2
    return s


def srs(labels, decay=0.8, n_updates=4):
    """Return SimRank of the objects (N, N) in the graph of objects and clusters, by recursion over vertex pairs."""
    labels, b = np.asarray(labels), incidence(labels)
    objects, of_clusters = np.eye(len(b)), np.eye(b.shape[1])
    for _ in range(n_updates):
        next_objects, next_clusters = np.eye(len(b)), np.eye(b.shape[1])
        for x in range(len(b)):
            for y in range(len(b)):
                if x != y:
                    next_objects[x, y] = decay * (b[x] @ of_clusters @ b[y]) / labels.shape[1] ** 2
        for c in range(b.shape[1]):
            for d in range(b.shape[1]):
                if c != d:
                    next_clusters[c, d] = decay * (b[:, c] @ objects @ b[:, d]) / (b[:, c].sum() * b[:, d].sum())
        objects, of_clusters = next_objects, next_clusters
    return objects


def walks(similarity, n_steps):
    """Scale the rows of the similarity to sum 1: P. Return the cosines of the concatenated rows of P, P², …, P^n."""
    total = similarity.sum(axis=1, keepdims=True)
    p = np.divide(similarity, total, out=np.zeros(similarity.shape), where=total > 0)
    trajectories = np.hstack([np.linalg.matrix_power(p, step) for step in range(1, n_steps + 1)])
    length = np.linalg.norm(trajectories, axis=1, keepdims=True)
    trajectories = np.divide(trajectories, length, out=np.zeros(trajectories.shape), where=length > 0)
    cosines = trajectories @ trajectories.T
    np.fill_diagonal(cosines, 1.0)
    return cosines


def trajectories(labels, n_steps=20):
    """Return the cosines of the random walks of all clusters on their Jaccard similarity, (N_c, N_c): ECPCS."""
    return walks(_without_diagonal(jaccard(labels)), n_steps)


def propagated(labels, n_neighbors, n_steps):
    """Return PTS of the distinct rows, (G, G), and the neighbours that it was propagated along: PTA, PTGP."""
    groups = core_groups(labels)
    s = _without_diagonal(coassociation(groups.rows))
    kept = np.array([np.where(row >= sorted(row)[-n_neighbors], row, 0.0) for row in s])
    kept = np.maximum(kept, kept.T)
    return walks(kept * groups.counts, n_steps), kept


def weac_weights(labels, beta=2.0):
    """Return (CAI / max CAI)^β of each clustering; CAI is its mean NMI_max with all other clusterings."""
    from sklearn.metrics import normalized_mutual_info_score

    columns = np.asarray(labels).T
    cai = np.zeros(len(columns))
    for m, a in enumerate(columns):
        for n, b in enumerate(columns):
            both = (a != MISSING) & (b != MISSING)
            if m != n and both.any():
                cai[m] += normalized_mutual_info_score(a[both], b[both], average_method="max") / (len(columns) - 1)
    return (cai / cai.max()) ** beta


def sact(labels, beta=2.0):
    """Return the similarity of clusters by their connected triples, (N_c, N_c): GP-MGLA.

    The largest is often that of a cluster with itself. The authors' Iris does not tell, where two clusters are equal.
    """
    w, weights = jaccard(labels), weac_weights(labels, beta)
    of = [weights[m] for m, _, _ in clusters(labels)]
    found = np.array([[sum(v * min(a, b) for v, a, b in zip(of, c, d, strict=True)) for d in w] for c in w])
    found /= found.max() if found.max() > 0 else 1.0
    np.fill_diagonal(found, 1.0)
    return found


def bipartite_transfer_cut(x, k):
    """Return the embedding of the left vertices of a bipartite graph, and the eigenvalues.

    The weights are x (left, right).
    """
    left, right = x.sum(axis=1), x.sum(axis=0)
    scale = 1 / np.sqrt(right)
    values, vectors = np.linalg.eigh(scale[:, None] * (x.T @ (x / left[:, None])) * scale)
    points = (x / left[:, None]) @ (scale[:, None] * vectors[:, : -k - 1 : -1])
    return points / np.linalg.norm(points, axis=1, keepdims=True), values[: -k - 1 : -1]


# --- TOME (Zhong et al. 2015) and DREC (Zhou, Zheng, Pan 2019) --------------------------------------------------------


def tome_refined(labels, x):
    """Return I'' (N, N): co-association by distances, with each cluster weighted by its scaled stability."""
    labels, x, found = np.asarray(labels), np.asarray(x, dtype=float), clusters(labels)
    n, n_clusterings = labels.shape
    distance = [[math.dist(x[i], x[j]) for j in range(n)] for i in range(n)]

    def near(i, j, members):
        largest = max(distance[a][b] for a in members for b in members)
        return 1 - distance[i][j] / largest if largest > 0 else 1.0

    def matrix(weights):
        total = np.zeros((n, n))
        for weight, (_, _, members) in zip(weights, found, strict=True):
            for i in members:
                for j in members:
                    total[i, j] += weight * near(i, j, members) / n_clusterings
        return total

    first = matrix([1] * len(found))
    stable = [np.mean([first[i, j] for i in members for j in members]) for _, _, members in found]
    least, most = min(stable), max(stable)
    return matrix([1.0 if most - least < 1e-12 else (s - least) / (most - least) for s in stable])


def strongest_paths(similar):
    """For all pairs, return the largest minimal link over all paths; the diagonal is unchanged."""
    paths, n = np.array(similar), len(similar)
    own = paths.diagonal().copy()
    for k in range(n):
        for i in range(n):
            for j in range(n):
                paths[i, j] = max(paths[i, j], min(paths[i, k], paths[k, j]))
    np.fill_diagonal(paths, own)
    return paths


def dense_representation(rows, strength=100.0, n_iter=5):
    """Return DREC's similarity of the distinct rows, computed in the steps of the authors' program."""
    x = incidence(rows).T
    gram, d = x.T @ x, np.ones(x.shape[1])
    for _ in range(n_iter):
        z = scipy.linalg.solve_sylvester(gram, strength * np.diag(1 / d), gram)
        d = 1 / (2 * np.sqrt(((x @ z - x) ** 2).sum(axis=0)))
    u, s, _ = np.linalg.svd(z)
    r = int((s > 1e-4 * s[0]).sum())
    u = u[:, :r] * np.sqrt(s[:r])
    u = u / np.sqrt((u**2).sum(axis=1, keepdims=True))
    return (u @ u.T) ** 4


def normalized_cut_embedding(similar, k):
    """Return the k leading eigenvectors of D^-½ S D^-½, rows scaled to length 1 (Ng, Jordan & Weiss)."""
    degrees = similar.sum(axis=1)
    _, vectors = np.linalg.eigh(similar / np.sqrt(np.outer(degrees, degrees)))
    vectors = vectors[:, -k:]
    return vectors / np.sqrt((vectors**2).sum(axis=1, keepdims=True))


# --- landmark spectral clustering (U-SPEC) ----------------------------------------------------------------------------


def lloyd(points, centers, max_iter):
    """Run at most the given number of Lloyd's iterations; return the centers. An empty cluster keeps its center."""
    before = None
    for _ in range(max_iter):
        labels = [min(range(len(centers)), key=lambda c: (((x - centers[c]) ** 2).sum(), c)) for x in points]
        if labels == before:
            break
        before = labels
        centers = [
            np.mean([x for x, own in zip(points, labels, strict=True) if own == c], axis=0)
            if c in labels
            else centers[c]
            for c in range(len(centers))
        ]
    return np.array(centers)


def landmark_graph(X, landmarks, centers, groups, n_neighbors):
    """Compute all distances.

    Return the ids (N, K) and distances (N, K) of the nearest landmarks, nearest first, and σ.
    """

    def nearest(x, points, among, n):
        return sorted(among, key=lambda i: (((x - points[i]) ** 2).sum(), i))[:n]

    size = min(len(landmarks), 10 * n_neighbors + 1)
    ids = []
    for x in X:
        (group,) = nearest(x, centers, range(len(centers)), 1)
        (first,) = nearest(x, landmarks, groups[group], 1)
        ids.append(
            nearest(x, landmarks, nearest(landmarks[first], landmarks, range(len(landmarks)), size), n_neighbors)
        )
    ids = np.array(ids)
    distances = np.sqrt(((X[:, None] - landmarks[ids]) ** 2).sum(axis=2))
    return ids, distances, distances.mean()


def landmark_cut(ids, distances, sigma, n_landmarks, k):
    """Return inner products (N, N) of the embedded points (k coordinates, length 1), and the k eigenvalues."""
    b = np.zeros((len(ids), n_landmarks))
    for i in range(len(ids)):
        for landmark, d in zip(ids[i], distances[i], strict=True):
            b[i, landmark] = math.exp(-(d**2) / (2 * sigma**2))
    used = b.sum(axis=0) > 0
    b = b[:, used]
    scaled = np.diag(b.sum(axis=1) ** -0.5) @ b @ np.diag(b.sum(axis=0) ** -0.5)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    points = b @ np.diag(b.sum(axis=0) ** -0.5) @ vectors[:, ::-1][:, :k]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points @ points.T, values[::-1][:k]


# --- communities of a graph (Blondel, Guillaume, Lambiotte & Lefebvre 2008) -------------------------------------------


def local_moves(weights, strengths, resolution, order):
    """Return the communities, numbered by first objects, after the moves of the first level.

    ``weights`` (N, N) are symmetric without a diagonal. Objects wait in a queue in ``order``; one that moves appends
    its neighbours in other communities that do not wait. A move needs a gain above the rounding of sums.
    """
    n, communities, queue = len(strengths), list(range(len(strengths))), list(order)
    while queue:
        i = queue.pop(0)
        neighbors = [j for j in range(n) if weights[i][j] > 0]
        expected = resolution / sum(strengths) * strengths[i]

        def gain(community, i=i, expected=expected):
            members = [j for j in range(n) if communities[j] == community and j != i]
            return sum(weights[i][j] for j in members) - expected * sum(strengths[j] for j in members)

        before = best = communities[i]
        largest = gain(before) + 1e-10 * strengths[i]
        for j in neighbors:
            if communities[j] != before and gain(communities[j]) > largest:
                best, largest = communities[j], gain(communities[j])
        communities[i] = best
        if best != before:
            queue += [j for j in neighbors if communities[j] != best and j not in queue]
    first = list(dict.fromkeys(communities))
    return [first.index(community) for community in communities]


def modularity(weights, communities, resolution=1.0):
    """Return Σ_C [in(C) / S - r (strength(C) / S)²] for symmetric weights (N, N) with a sum S."""
    total = np.sum(weights)
    parts = [np.flatnonzero(np.asarray(communities) == c) for c in np.unique(communities)]
    return sum(weights[np.ix_(p, p)].sum() / total - resolution * (weights[p].sum() / total) ** 2 for p in parts)


def fleiss_kappa(judgements):
    """Return Fleiss' kappa of judges about subjects, from judgements True or False (n_judges, n_subjects)."""
    judgements = np.asarray(judgements)
    n_judges = len(judgements)
    n_yes = judgements.sum(axis=0)
    alike = (n_yes * (n_yes - 1) + (n_judges - n_yes) * (n_judges - n_yes - 1)) / (n_judges * (n_judges - 1))
    p = judgements.mean()
    by_chance = p**2 + (1 - p) ** 2
    return (alike.mean() - by_chance) / (1 - by_chance)


def alone(column):
    """Return labels in which each object without a label has a label of its own."""
    return np.where(column < 0, column.max() + 1 + np.arange(len(column)), column)


def partitions(n, first=()):
    """Yield all partitions of n objects."""
    if len(first) == n:
        yield np.array(first)
        return
    for label in range(max(first, default=-1) + 2):
        yield from partitions(n, (*first, label))


def median_losses(labels, every, loss, a):
    """Return the mean loss (P,) of partitions (P, N), from the numbers of objects that each object is together with."""
    total = np.zeros(len(every))
    n, together = every.shape[1], every[:, :, None] == every[:, None, :]  # (P, N, N)
    sizes = together.sum(axis=2)
    for column in labels.T:
        own = alone(column)
        same = own[:, None] == own[None]
        both, of_own = (together & same).sum(axis=2), same.sum(axis=1)
        if loss == "binder":
            total += (a * (of_own - both) + (2 - a) * (sizes - both)).sum(axis=1) / n**2
        elif loss == "vi":
            total += (a * np.log2(of_own / both) + (2 - a) * np.log2(sizes / both)).sum(axis=1) / n
        else:
            agreed, truth, estimate = (both - 1).sum(axis=1), (of_own - 1).sum(), (sizes - 1).sum(axis=1)
            chance = truth * estimate / (n * (n - 1))
            beyond = (truth + estimate) / 2 - chance
            total += 1 - np.where(beyond > 1e-9, (agreed - chance) / np.where(beyond > 1e-9, beyond, 1), 1.0)
    return total / labels.shape[1]
