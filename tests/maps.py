"""Random graphs and noisy maps of pixels, for tests of neighbours."""

import numpy as np
from scipy.sparse import coo_array

import gpuens as ge


def random_graph(n, n_edges, seed=0, weighted=True):
    """Return a graph of random edges; some objects have no neighbour."""
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.sort(rng.integers(n, size=(n_edges, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    weights = rng.uniform(0.2, 3, len(pairs)) if weighted else np.ones(len(pairs))
    matrix = coo_array((weights, pairs.T), shape=(n, n))
    return ge.Graph.of((matrix + matrix.T).tocsr())


def noisy_map(shape, n_classes, noise, *, stripes=0, n_clusterings=10, seed=0):
    """Return labels (N, M), classes (N,) and the width (N,) of the stripe of a pixel, 0 outside of stripes.

    Classes are the colours of Voronoi cells. Vertical stripes of width 1 … ``stripes`` are a further class. Each
    clustering merges two classes and divides one, and 30 % of its labels are wrong: those of single pixels, or of
    whole patches (``noise``).
    """
    rng, width = np.random.default_rng(seed), shape[1]
    places = np.indices(shape).reshape(2, -1).T
    n_cells = 4 * n_classes

    def cells(n):
        centers = rng.random((n, 2)) * shape
        return ((places[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)

    classes = (rng.permutation(n_cells) % n_classes)[cells(n_cells)]
    wide = np.zeros(len(places), dtype=np.int64)
    for size in range(1, stripes + 1):
        first = 3 + (size - 1) * width // stripes
        within = (places[:, 1] >= first) & (places[:, 1] < first + size)
        classes[within], wide[within] = n_classes, size
    n_classes = classes.max() + 1
    labels = np.empty((len(places), n_clusterings), dtype=np.int64)
    for column in labels.T:
        merged, absorbed, divided = rng.permutation(n_classes)[[0, 1, 2]]
        column[:] = np.where(classes == absorbed, merged, classes)
        column[(classes == divided) & (cells(6) % 2 == 1)] = n_classes
        if noise == "pixels":
            wrong = rng.random(len(places)) < 0.3
            column[wrong] = rng.integers(n_classes + 1, size=wrong.sum())
        else:
            patches, labels_of = cells(120), rng.integers(n_classes + 1, size=120)
            wrong = (rng.random(120) < 0.3)[patches]
            column[wrong] = labels_of[patches[wrong]]
    return labels, classes, wide
