"""Ensembles of sizes near the limits of algorithms, and their intersections, counted slowly.

Algorithms change where a size passes a constant of the code (bits up to 200 cells, 8-bit codes up to 255 clusters, a
matrix up to 1,500 rows), and faults hide there. Sizes are drawn around these constants, which are read from the
sources: a new constant adds its sizes.
"""

import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from conftest import without

from gpuens import contingency

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [*ROOT.glob("kernels/**/*.[ch]*"), *ROOT.glob("kernels/*.cu"), *ROOT.glob("gpuens/**/*.py")]
CONSTANT = re.compile(r"\b[A-Z][A-Z_]+(?:\[[^]]*\])? = ([\d'_]+)(?: ?(<<|\*\*) ?(\d+))?\b(?!\.)")
WIDE = 2**16  # number of clusters from which codes take more than 16 bits
CELLS = 2**21  # most cells of the dense table of all clusters that a test makes
ENTRIES = 2**14  # most labels of an ensemble, so that it takes some hundredths of a second
LARGE = 0.02  # share of ensembles with more clusters than 16 bits count


# --- ensembles --------------------------------------------------------------------------------------------------------


@cache
def limits():
    """Return the constants of the sources, ascending, without those above 16 bits."""
    values = {WIDE}
    for path in SOURCES:
        for number, operator, exponent in CONSTANT.findall(path.read_text(encoding="utf-8")):
            value = int(re.sub("['_]", "", number) or 0)
            values.add(value << int(exponent) if operator == "<<" else value ** int(exponent or 1))
    return tuple(sorted(value for value in values if 0 < value <= WIDE))


def drawn_size(rng, most):
    """Return a limit, half of one, or a number beside these, from 1 to ``most``; every power of two is as likely."""
    near = np.unique([size + step for limit in limits() for size in (limit, limit // 2) for step in (-1, 0, 1)])
    near = near[(near >= 1) & (near <= most)]
    octaves = np.log2(near).astype(int)
    return int(rng.choice(near[octaves == rng.choice(np.unique(octaves))]))


def drawn_labels(rng):
    """Return labels (N, M), -1 = missing, of clusterings of very different sizes, and weights of objects or None."""
    if rng.random() < LARGE:
        n_objects, n_clusterings = WIDE + int(rng.integers(-2, 3)), 2
    else:
        n_clusterings = drawn_size(rng, 40)
        n_objects = max(2, n_clusterings, *(drawn_size(rng, ENTRIES // n_clusterings) for _ in range(2)))
    sizes = [drawn_size(rng, n_objects) for _ in range(n_clusterings)]
    truth = rng.integers(drawn_size(rng, 40), size=n_objects)
    noise = rng.choice([0.0, 0.1, 0.5, 1.0])
    columns = [
        np.where(rng.random(n_objects) < noise, rng.integers(k, size=n_objects), truth % k)
        if rng.random() < 0.8
        else np.arange(n_objects) % k
        for k in sizes
    ]
    labels = without(np.stack(columns, axis=1), rng.choice([0.0, 0.0, 0.1, 0.5]), rng)
    weights = [None, None, rng.integers(1, 5, n_objects), rng.random(n_objects) + 0.5]
    return labels, weights[rng.integers(len(weights))]


# --- what must hold ---------------------------------------------------------------------------------------------------


def numbered(labels):
    """Return labels numbered from 0 in each clustering, -1 = missing, and the number of clusters of each clustering."""
    columns, sizes = [], []
    for column in labels.T:
        values, codes = np.unique(column[column >= 0], return_inverse=True)
        columns.append(np.full(len(column), -1))
        columns[-1][column >= 0] = codes
        sizes.append(len(values))
    return np.stack(columns, axis=1), np.array(sizes)


def offsets_of(sizes):
    """Return the number of the first cluster of each clustering, and of all clusters together, (M + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)])


def literal_tables(codes, sizes, weights):
    """Return {(i, j): (rows, columns, sums)} of the cells that are not empty, ascending, for all i <= j."""
    weights = np.ones(len(codes)) if weights is None else weights
    tables = {}
    for i in range(codes.shape[1]):
        for j in range(i, codes.shape[1]):
            both = (codes[:, i] >= 0) & (codes[:, j] >= 0)
            places, cell = np.unique(codes[both, i] * sizes[j] + codes[both, j], return_inverse=True)
            sums = np.bincount(cell, weights[both], minlength=len(places))
            tables[i, j] = places // sizes[j], places % sizes[j], sums
    return tables


def counted_tables(labels, weights, n_clusters, device="cpu"):
    """Return intersections by layout: sparse, and dense if there are few clusters."""
    layouts = ["sparse", *(["dense"] if n_clusters**2 <= CELLS else [])]
    return {layout: contingency.intersections(labels, weights, layout=layout, device=device) for layout in layouts}


def check_tables(counted, tables, offsets):
    """Compare intersections in both layouts with the literal tables."""
    if "dense" in counted:
        assert np.array_equal(counted["dense"], counted["sparse"].toarray()), "layouts of intersections differ"
    for (i, j), (rows, columns, sums) in tables.items():
        block = counted["sparse"][offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]].tocoo()
        order = np.lexsort((block.col, block.row))
        assert np.array_equal(block.row[order], rows), f"intersections of {i} and {j}: rows"
        assert np.array_equal(block.col[order], columns), f"intersections of {i} and {j}: columns"
        assert np.allclose(block.data[order], sums, rtol=1e-12, atol=0), f"intersections of {i} and {j}: sums"


def tables_of_seeds(n):
    """Compare the intersections of ``n`` ensembles with literal ones; return ``n``."""
    warnings.simplefilter("ignore", UserWarning)  # about constant clusterings
    for seed in range(n):
        labels, weights = drawn_labels(np.random.default_rng(seed))
        codes, sizes = numbered(labels)
        offsets = offsets_of(sizes)
        counted = counted_tables(list(labels.T), weights, int(offsets[-1]))
        check_tables(counted, literal_tables(codes, sizes, weights), offsets)
    return n
