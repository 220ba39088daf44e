"""Slow, literal references: every definition written down the way the papers print it, and nothing shared with gpuens.

All take a plain integer label matrix (N, M) with -1 for missing. The clusters of a clustering are its label values in
ascending order, and clusters are numbered through from the first clustering to the last, as `gpuens.Ensemble` does.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.cluster.hierarchy
import scipy.linalg

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
    """Return B, (N, N_c): 1 where the object is in the cluster. A missing label leaves its clustering's part empty."""
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
    """Return B diag(w) Bᵀ / M, (N, N): eq 12 for w = 1, eq 15 for w = ECI. M is the number of all clusterings."""
    b = incidence(labels)
    w = np.ones(b.shape[1]) if weights_per_cluster is None else np.asarray(weights_per_cluster)
    return b @ np.diag(w) @ b.T / np.shape(labels)[1]


# --- core groups ------------------------------------------------------------------------------------------------------


class CoreGroups(NamedTuple):
    rows: np.ndarray  # (G, M), the distinct label rows
    counts: np.ndarray  # (G,), objects in each
    membership: np.ndarray  # (N,), the group of each object


def core_groups(labels):
    """Return the distinct rows in lexicographic order, where missing comes after every label."""
    rows = [tuple(row) for row in np.asarray(labels).tolist()]
    distinct = sorted(set(rows), key=lambda row: [math.inf if label == MISSING else label for label in row])
    number = {row: g for g, row in enumerate(distinct)}
    return CoreGroups(
        np.array(distinct), np.array([rows.count(row) for row in distinct]), np.array([number[row] for row in rows])
    )


# --- linkage ----------------------------------------------------------------------------------------------------------


class Dendrogram(NamedTuple):
    merges: list  # G - 1 of (id_a, id_b, similarity) in greedy order, id_a < id_b
    heights: np.ndarray  # (G - 1,), similarities made monotone: min(similarity, heights of the two parts)
    groups: CoreGroups


def splitmix64(x):
    """Return the finaliser of SplitMix64, a bijection of the 64-bit words."""
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % 2**64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def mix(a, b):
    """Return the number that decides between equally similar pairs of regions: the smaller one goes first."""
    return splitmix64(min(a, b) << 32 | max(a, b))


def greedy_average_linkage(labels, weights=None):
    """Merge the most similar pair of regions again and again; a region's id is the smallest core group in it.

    The similarity of A and B is Σ_c w_c n_A[c] n_B[c] / (|A| |B| M). Without weights it is one correctly rounded
    division of two integers; with weights a float64 sum in ascending order of the clusters, then one division.
    Regions similar to nothing are chained at the end, in ascending order of their ids, at similarity 0.
    """
    groups = core_groups(labels)
    n_groups, n_clusterings = groups.rows.shape
    found = clusters(groups.rows)
    n = np.array([[int(row[m] == value) for m, value, _ in found] for row in groups.rows]) * groups.counts[:, None]
    size = groups.counts.copy()
    height_of = np.full(n_groups, np.inf)  # of the last merge in the region
    alive = np.ones(n_groups, dtype=bool)
    similarity = np.full((n_groups, n_groups), -1.0)  # [a, b] with a < b, both alive

    def update(a):
        others = np.flatnonzero(alive & (np.arange(n_groups) != a))
        denominators = [int(size[a]) * int(size[b]) * n_clusterings for b in others]
        if weights is None:
            numerators = (n[others] @ n[a]).tolist()  # Python ints
        else:
            numerators = np.zeros(len(others))
            for c in np.flatnonzero(n[a]):  # ascending; a zero product adds 0.0, which changes nothing
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
        similarity[b, :] = similarity[:, b] = -1.0

    merges, heights = [], []
    for a in range(n_groups):
        update(a)
    while alive.sum() > 1 and similarity.max() > 0:
        best = similarity.max()
        a, b = min(np.argwhere(similarity == best).tolist(), key=lambda pair: mix(*pair))
        merge(a, b, float(best))
        update(a)
    first, *rest = np.flatnonzero(alive).tolist()
    for b in rest:
        merge(first, b, 0.0)
    return Dendrogram(merges, np.array(heights), groups)


def cut(merges, n_groups, k):
    """Return the label of every group after the first G - k merges, numbered by first appearance in group order."""
    region = list(range(n_groups))
    for a, b, *_ in merges[: n_groups - k]:
        region = [region[a] if r == region[b] else r for r in region]
    order = list(dict.fromkeys(region))
    return np.array([order.index(r) for r in region])


def full_scipy(labels, weights=None, method="average"):
    """Return SciPy's linkage of 1 - co-association over all N objects (with ties, SciPy's own choice among them)."""
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
