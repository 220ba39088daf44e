"""The child process of tests/fuzz/test_fuzz_ensembles.py: ensembles on all levels, on emulated kernels, by oracles.

A seed describes an ensemble of sizes near the limits of algorithms (tests/drawn_ensembles.py):

    python tests/fuzz_ensembles_worker.py "{'seed': 7}"

The results are compared with literal ones, and bit by bit with those of the emulated device; primitives are compared on
all levels (tests/levels.py).
"""

import faulthandler
import math
import os
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager, nullcontext

import numpy as np
import oracles
from conftest import BY_FEATURES, METHODS
from drawn_ensembles import WIDE, check_tables, counted_tables, drawn_labels, literal_tables, numbered, offsets_of
from fuzz_child import serve
from fuzz_worker import REFUSALS, check_equal_rows, check_labels, one_sentence
from levels import all_levels

from gpuens import contingency, evidence
from gpuens.labels.rows import Rows
from gpuens.partition.linkage import conduct, few_rows
from gpuens.partition.linkage.average import average_linkage
from gpuens.partition.linkage.single import single_linkage
from gpuens.reduction.core_groups import core_groups
from gpuens.runtime import device as devices
from gpuens.similarity.diagonal import Diagonal

LITERAL_ROWS = 32  # most rows of the literal oracle of average linkage
METHOD_OBJECTS = 1025  # most objects for a method: some take the cube of the number of rows
PAIRS_OBJECTS = 256  # most objects whose pairs are compared one by one
EMULATED_OBJECTS = 100  # most objects on the emulated device, whose threads run one after the other
SUMS_OF_WEIGHTS = ("sparse intersections", "dense intersections", "entropies")
EMULATED = os.environ.get("GPUENS_EMULATOR") != "none"


class Drawn:
    """An ensemble that a seed describes, with its literal codes and tables."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.labels, self.weights = drawn_labels(rng)
        self.columns = list(self.labels.T)  # a matrix of more clusterings than objects would be refused
        self.codes, self.sizes = numbered(self.labels)
        self.offsets = offsets_of(self.sizes)
        self.n_clusters = int(self.offsets[-1])
        self.tables = literal_tables(self.codes, self.sizes, self.weights)
        self.real_weights = rng.random(self.n_clusters) + 0.1
        self.kind = str(rng.choice(["ones", "real"]))  # kind of weights on the emulated device, which links slowly
        self.method = str(rng.choice(sorted(METHODS)))
        self.has_real_weights = self.weights is not None and self.weights.dtype.kind == "f"
        self.distinct = np.unique(self.labels, axis=0)

    def __len__(self):
        return len(self.labels)


# --- results ----------------------------------------------------------------------------------------------------------


def results_of(drawn, device="cpu"):
    """Return the results of an ensemble by their names, each an array or a tuple of arrays."""
    counted = counted_tables(drawn.columns, drawn.weights, drawn.n_clusters, device)
    results = {f"{layout} intersections": table for layout, table in counted.items()}
    results["entropies"] = contingency.entropy(drawn.columns, drawn.weights, device=device)
    if drawn.weights is None:
        results["ARI"] = contingency.agreement(drawn.columns, "ari", device=device)
    if len(drawn) < WIDE - 2:
        rows = core_groups(Rows(drawn.columns, device=device)).rows
        results["core groups"] = rows.codes, rows.counts
        ones = np.ones(drawn.n_clusters, dtype=np.int64)
        weights = {"ones": ones, "real": drawn.real_weights}
        results |= linkages(rows, weights if device == "cpu" else {drawn.kind: weights[drawn.kind]}, device)
        if len(rows) <= PAIRS_OBJECTS:
            results["single linkage"] = merges_of(single_linkage(rows, Diagonal(ones, rows.offsets)))
    if len(drawn) <= PAIRS_OBJECTS:
        counted = evidence.pairs(drawn.columns, device=device)
        results["pairs"] = counted.copresent, counted.matches, counted.counts
    if len(drawn) <= METHOD_OBJECTS:
        results[drawn.method] = labels_by_method(drawn, device)
    return results


@contextmanager
def only_path(path):
    """Make average linkage use the matrix of few rows, a table of pairs, or lists with a kind of search."""
    before = few_rows.MOST_ROWS, conduct.LARGEST_TABLE_BYTES, conduct.SAMPLED_FROM
    few_rows.MOST_ROWS = 2**16 if path == "few rows" else 1
    conduct.LARGEST_TABLE_BYTES, conduct.SAMPLED_FROM = (2**30, 4) if path == "table" else (0, 4096)
    try:
        with conduct.only(path) if path in conduct.KINDS else nullcontext():
            yield
    finally:
        few_rows.MOST_ROWS, conduct.LARGEST_TABLE_BYTES, conduct.SAMPLED_FROM = before


def linkages(rows, weights_by_kind, device):
    """Yield the merges of average linkage for each kind of weights, equal by every path of the device."""
    paths = ("few rows", "table", *conduct.KINDS) if device == "cpu" else ("lists",)
    for name, weights in weights_by_kind.items():
        trees = {}
        for path in paths:
            with only_path(path):
                trees[path] = merges_of(average_linkage(rows, Diagonal(weights, rows.offsets)))
        different = [path for path, tree in trees.items() if not same_bits(tree, trees[paths[0]])]
        assert not different, f"average linkage, {name}: {different} differ from {paths[0]}"
        yield f"average linkage, {name}", trees[paths[0]]


def merges_of(tree):
    return tree.kept, tree.absorbed, tree.similarities


def labels_by_method(drawn, device):
    """Fit a method; return its labels, or no labels if it refuses the ensemble in one sentence."""
    name, k = drawn.method, min(3, len(drawn.distinct))
    parameters = {"random_state": 0} if "random_state" in METHODS[name]._get_param_names() else {}
    sample_weight = {} if drawn.weights is None or name in BY_FEATURES else {"sample_weight": drawn.weights}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = METHODS[name](k, device=device, **parameters)
        try:
            estimator.fit(drawn.columns, **sample_weight)
        except REFUSALS as error:
            one_sentence(error)
            return np.empty(0)
    check_labels({}, estimator, [str(warning.message) for warning in caught], len(drawn))
    check_equal_rows(drawn.labels, estimator.labels_)
    predicted = estimator.predict(drawn.columns)
    assert np.array_equal(predicted, estimator.labels_), "objects of fit are predicted to be elsewhere"
    return estimator.labels_


def bits_of(result):
    """Return the type, the shape and the bytes of each array of a result."""
    if hasattr(result, "tocsr"):
        result = result.indptr, result.indices, result.data
    arrays = [devices.to_host(array) for array in (result if isinstance(result, tuple) else (result,))]
    return [(array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()) for array in arrays]


def same_bits(result, other):
    return bits_of(result) == bits_of(other)


# --- literal results --------------------------------------------------------------------------------------------------


def check(drawn, results):
    """Compare the results of an ensemble with literal ones."""
    layouts = ("sparse", "dense")
    counted = {layout: results[f"{layout} intersections"] for layout in layouts if f"{layout} intersections" in results}
    check_tables(counted, drawn.tables, drawn.offsets)
    assert np.allclose(results["entropies"], literal_entropy(drawn.tables, drawn.offsets), atol=1e-6), "entropies"
    for (i, j), table in drawn.tables.items() if "ARI" in results else ():
        literal = literal_ari(*table) if i < j else None
        assert literal is None or abs(results["ARI"][i, j] - literal) < 1e-9, f"ARI of {i} and {j}"
    if "core groups" in results:
        codes, _ = results["core groups"]
        assert len(codes) == len(drawn.distinct), "core groups"
        if len(codes) <= LITERAL_ROWS:
            heights = np.minimum.accumulate(results["average linkage, ones"][-1])
            literal = np.sort(oracles.greedy_average_linkage(drawn.codes).heights)[::-1]
            assert np.allclose(heights, literal, rtol=1e-12, atol=0), "average linkage"
    if "single linkage" in results:
        literal = oracles.single_linkage_heights(np.unique(drawn.codes, axis=0))
        assert np.allclose(results["single linkage"][-1], literal, atol=1e-12), "single linkage"
    if "pairs" in results:
        *bins, counts = (values.tolist() for values in results["pairs"])
        assert dict(zip(zip(*bins, strict=True), counts, strict=True)) == literal_pairs(drawn.codes), "pairs of objects"


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


def literal_pairs(codes):
    """Return a histogram of pairs of objects, {(copresent, matches): number of pairs}, counted one by one."""
    known = (codes >= 0).astype(int)
    upper = np.triu_indices(len(codes), 1)
    copresent = (known @ known.T)[upper]
    matches = sum(np.equal.outer(column, column) & (column >= 0) for column in codes.T)[upper]
    return Counter(zip(copresent.tolist(), matches.tolist(), strict=True))


# --- a seed -----------------------------------------------------------------------------------------------------------


def verdict(case):
    """Return "ran"; raise AssertionError for a fault of gpuens."""
    drawn = Drawn(case["seed"])
    with all_levels():
        expected = results_of(drawn)
    check(drawn, expected)
    if EMULATED and len(drawn) <= EMULATED_OBJECTS:
        compare(results_of(drawn, "emulated"), expected, rounded=drawn.has_real_weights)
    return "ran"


def compare(results, expected, rounded):
    """Compare results of the emulated device with the CPU's; its sums of real weights may be ``rounded`` otherwise."""
    for name, result in results.items():
        close = rounded and name in SUMS_OF_WEIGHTS and np.allclose(dense(result), dense(expected[name]), atol=1e-12)
        assert close or same_bits(result, expected[name]), f"the emulated device: {name} of other bits"


def dense(result):
    return result.toarray() if hasattr(result, "tocsr") else result


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
