"""The child process of tests/test_fuzz_ensembles.py: ensembles of sizes near the code's limits, against slow oracles.

A seed describes an ensemble (tests/drawn_ensembles.py):

    python tests/fuzz_ensembles_worker.py "{'seed': 7}"
"""

import faulthandler
import math
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager, nullcontext

import numpy as np
import oracles
from conftest import BY_FEATURES, METHODS
from drawn_ensembles import WIDE, check_tables, drawn_labels, literal_tables, numbered, offsets_of
from fuzz_child import serve
from fuzz_worker import REFUSALS, check_equal_rows, check_labels, one_sentence

from gpuens import contingency, evidence
from gpuens.partition.linkage import average, few_rows, pair_table, searches
from gpuens.partition.linkage.average import average_linkage
from gpuens.partition.linkage.single import single_linkage
from gpuens.reduction.core_groups import CoreGroups
from gpuens.similarity.diagonal import Diagonal

SEARCHES = searches.Costs._fields
LITERAL_ROWS = 32  # most rows of the literal oracle of average linkage
METHOD_OBJECTS = 1025  # most objects for a method: some take the cube of the number of rows
PAIRS_OBJECTS = 256  # most objects whose pairs are compared one by one


# --- what must hold ---------------------------------------------------------------------------------------------------


def literal_entropy(tables, offsets):
    """Return the entropy H (N_c,) of every cluster by its literal tables, base 2."""
    entropies = np.zeros(offsets[-1])
    for (i, j), (rows, columns, sums) in tables.items():
        for m, clusters in [(i, rows), (j, columns)][: 1 + (i < j)]:
            totals = np.bincount(clusters, sums, minlength=offsets[m + 1] - offsets[m])
            shares = sums / totals[clusters]
            entropies[offsets[m] : offsets[m + 1]] -= np.bincount(clusters, shares * np.log2(shares), len(totals))
    return entropies


def literal_ari(rows, columns, sums):
    """Return the adjusted Rand index of a table of whole numbers, in Python's integers."""

    def pairs(counts):
        return sum(math.comb(int(count), 2) for count in counts)

    both, a, b = pairs(sums), pairs(np.bincount(rows, sums)), pairs(np.bincount(columns, sums))
    everything = math.comb(int(sums.sum()), 2)
    if not everything:
        return None
    chance = a * b / everything
    return 1.0 if (a + b) / 2 == chance else (both - chance) / ((a + b) / 2 - chance)


def check_scores(labels, weights, tables, offsets):
    """Compare entropies, and without weights adjusted Rand indices, with those of the literal tables."""
    entropies = contingency.entropy(labels, weights)
    assert np.allclose(entropies, literal_entropy(tables, offsets), atol=1e-6), "entropies"
    if weights is None:
        scores = contingency.agreement(labels, "ari")
        for (i, j), table in tables.items():
            expected = literal_ari(*table) if i < j else None
            assert expected is None or abs(scores[i, j] - expected) < 1e-9, f"ARI of {i} and {j}"


@contextmanager
def only_path(path, n_rows):
    """Make average linkage use the matrix of few rows, a table of pairs, or lists with a kind of search."""
    before = few_rows.MOST, pair_table.MOST, average.FEWEST
    few_rows.MOST = n_rows if path == "few rows" else 1
    pair_table.MOST, average.FEWEST = (2**30, 4) if path == "table" else (0, 4096)
    try:
        with searches.only(path) if path in SEARCHES else nullcontext():
            yield
    finally:
        few_rows.MOST, pair_table.MOST, average.FEWEST = before


def bits_of(tree):
    """Return the merges of a dendrogram as bytes."""
    return b"".join(part.tobytes() for part in (tree.kept, tree.absorbed, tree.similarities))


def check_trees(labels, rows, rng):
    """Compare core groups and linkages with slow ones, and all searches of average linkage with each other."""
    assert len(rows) == len(np.unique(labels, axis=0)), "core groups"
    ones = np.ones(rows.n_clusters, dtype=np.int64)
    for name, weights in {"ones": ones, "real": rng.random(rows.n_clusters) + 0.1}.items():
        trees = {}
        for path in ("few rows", "table", *SEARCHES):
            with only_path(path, len(rows)):
                trees[path] = average_linkage(rows, Diagonal(weights, rows.offsets))
        different = [path for path, tree in trees.items() if bits_of(tree) != bits_of(trees["few rows"])]
        assert not different, f"average linkage, {name}"
        if len(rows) <= LITERAL_ROWS and name == "ones":
            heights = np.minimum.accumulate(trees["few rows"].similarities)
            literal = np.sort(oracles.greedy_average_linkage(labels).heights)[::-1]
            assert np.allclose(heights, literal, rtol=1e-12, atol=0), "average linkage"
    if len(rows) <= PAIRS_OBJECTS:
        heights = single_linkage(rows, Diagonal(ones, rows.offsets)).similarities
        literal = oracles.single_linkage_heights(np.unique(labels, axis=0))
        assert np.allclose(heights, literal, atol=1e-12), "single linkage"


def check_pairs(labels):
    """Compare the histogram of pairs of objects with pairs that are counted one by one."""
    known = (labels >= 0).astype(int)
    upper = np.triu_indices(len(labels), 1)
    copresent = (known @ known.T)[upper]
    matches = sum(np.equal.outer(column, column) & (column >= 0) for column in labels.T)[upper]
    counted = evidence.pairs(labels)
    bins = zip(counted.copresent.tolist(), counted.matches.tolist(), strict=True)
    literal = Counter(zip(copresent.tolist(), matches.tolist(), strict=True))
    assert dict(zip(bins, counted.counts.tolist(), strict=True)) == literal, "pairs of objects"


def check_method(name, labels, weights):
    """Fit a method; its labels are sound, equal for equal rows, and predicted again."""
    k = int(min(3, len(np.unique(labels, axis=0))))
    parameters = {"random_state": 0} if "random_state" in METHODS[name]._get_param_names() else {}
    sample_weight = {} if weights is None or name in BY_FEATURES else {"sample_weight": weights}
    columns = list(labels.T)  # a matrix of more clusterings than objects would be refused
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = METHODS[name](k, **parameters)
        try:
            estimator.fit(columns, **sample_weight)
        except REFUSALS as error:
            one_sentence(error)
            return
    check_labels({}, estimator, [str(warning.message) for warning in caught], len(labels))
    check_equal_rows(labels, estimator.labels_)
    assert np.array_equal(estimator.predict(columns), estimator.labels_), "objects of fit are predicted to be elsewhere"


def verdict(case):
    """Return "ran"; raise AssertionError for a fault of gpuens."""
    rng = np.random.default_rng(case["seed"])
    labels, weights = drawn_labels(rng)
    codes, sizes = numbered(labels)
    offsets = offsets_of(sizes)
    tables = literal_tables(codes, sizes, weights)
    columns = list(labels.T)
    check_tables(columns, weights, tables, offsets)
    check_scores(columns, weights, tables, offsets)
    if len(labels) < WIDE - 2:
        check_trees(codes, CoreGroups().reduce(columns).rows, rng)
    if len(labels) <= METHOD_OBJECTS:
        check_method(rng.choice(sorted(METHODS)), labels, weights)
    if len(labels) <= PAIRS_OBJECTS:
        check_pairs(codes)
    return "ran"


def answer(case):
    """Return "ran", or a message about a fault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return verdict(case)
    except BaseException as error:
        return "".join(traceback.format_exception(error))


def answers(seconds, first_seed=0):
    """Answer one seed after the other for so many seconds; print their number, and return the messages about faults."""
    end, seed, faults = time.monotonic() + seconds, first_seed, []
    while time.monotonic() < end:
        said = answer({"seed": seed})
        if said != "ran":
            faults.append(f"seed {seed}: {said}")
            print(faults[-1], flush=True)
        seed += 1
    print(f"{seed - first_seed} ensembles, {len(faults)} faults")
    return faults


if __name__ == "__main__":
    faulthandler.enable()
    serve(answer)
