"""Hostile graphs of hostile labels: domains and connected clusters are found, or refused in one sentence.

The suite tries 40 graphs, the same every time; ``make fuzz`` tries 1,000 others.
"""

import os
import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("hypothesis", reason="seeds are drawn by hypothesis: pip install 'gpuens[dev]'")

from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from test_fuzz import INPUTS, settings_of

import gpuens as ge

GRAPHS = 40 if "GPUENS_FUZZ" not in os.environ else INPUTS // 5
SIZES = (1, 2, 3, 7, 30, 80)


def random_pairs(rng, n):
    """Return pairs of objects (n_pairs, 2), with loops and several of the same objects."""
    return rng.integers(0, n, (int(rng.integers(0, 4 * n)), 2))


def matrix_of(pairs, weights, n):
    return csr_array(coo_array((weights, tuple(pairs.T)), shape=(n, n)))


def both_ways(pairs, weights, n):
    matrix = matrix_of(pairs, weights, n)
    return csr_array(matrix.maximum(matrix.T))


def hub(rng, n):
    """Return a star around the last object, with a few edges more."""
    rays = np.column_stack([np.full(n, n - 1), np.arange(n)])
    pairs = np.concatenate([rays, random_pairs(rng, n)])
    return both_ways(pairs, np.ones(len(pairs)), n)


def named(rng, n):
    """Return edges of objects that have names, in an order of their own."""
    pairs = random_pairs(rng, n)
    names = np.array([f"o{i}" for i in range(n)])
    return pd.DataFrame({"a": names[pairs[:, 0]], "b": names[pairs[:, 1]], "weight": rng.random(len(pairs)) + 0.1})


def spoilt(rng, n, value):
    """Return a symmetric matrix with one weight of ``value``, if it has a weight."""
    pairs = random_pairs(rng, n)
    matrix = both_ways(pairs, np.ones(len(pairs)), n)
    matrix.data[:1] = value
    return matrix


KINDS = {
    "symmetric": lambda rng, n, pairs: both_ways(pairs, rng.random(len(pairs)), n),
    "asymmetric": lambda rng, n, pairs: matrix_of(pairs, rng.random(len(pairs)), n),
    "parallel, loops": lambda rng, n, pairs: np.concatenate([pairs, pairs, pairs[:, ::-1]]),
    "NaN": lambda rng, n, pairs: spoilt(rng, n, np.nan),
    "infinite": lambda rng, n, pairs: spoilt(rng, n, np.inf),
    "negative": lambda rng, n, pairs: spoilt(rng, n, -1.0),
    "empty": lambda rng, n, pairs: csr_array((n, n)),
    "explicit zeros": lambda rng, n, pairs: both_ways(pairs, np.zeros(len(pairs)), n),
    "hub": lambda rng, n, pairs: hub(rng, n),
    "of names": lambda rng, n, pairs: named(rng, n),
    "tiny weights": lambda rng, n, pairs: both_ways(pairs, np.full(len(pairs), 1e-300), n),
    "huge weights": lambda rng, n, pairs: both_ways(pairs, np.full(len(pairs), 1e300), n),
    "all magnitudes": lambda rng, n, pairs: both_ways(pairs, 10.0 ** rng.uniform(-300, 300, len(pairs)), n),
    "magnitudes of edges": lambda rng, n, pairs: np.column_stack([pairs, 10.0 ** rng.uniform(-300, 300, len(pairs))]),
    "of other objects": lambda rng, n, pairs: csr_array((n + 1, n + 1)),
    "not square": lambda rng, n, pairs: csr_array((n, n + 1)),
    "a grid": lambda rng, n, pairs: ge.Graph.grid((n,)),
}
REFUSED = {"of other objects": "objects", "not square": "square"}  # at all times, with this word
SPOILT = ("NaN", "infinite", "negative")  # refused as soon as there is an edge


def labels_of(rng, n, with_names):
    """Return labels (N, M) with a few missing ones; a DataFrame in another order if the objects have names."""
    labels = rng.integers(0, rng.integers(1, 5), (n, int(rng.integers(1, 6))))
    missing = rng.random(labels.shape) < rng.choice([0.0, 0.2])
    missing[:, 0] = missing[0] = False  # each object and each clustering has a label
    labels[missing] = -1
    if not with_names:
        return labels
    return pd.DataFrame(labels, index=[f"o{i}" for i in rng.permutation(n)])


def estimator_of(rng, n):
    """Return an estimator; sometimes it wants more clusters than there are objects."""
    k = [None, 1, 2, 3, n, n + 3][rng.integers(6)]
    if rng.random() < 0.4:
        return ge.EAC(k)
    parameters = {"steps": int(rng.choice([0, 1, 4])), "regions": [None, "auto", 2][rng.integers(3)]}
    return ge.Spatial(k, method=str(rng.choice(["qmi", "lwgp"])), refine=bool(rng.random() < 0.7), **parameters)


def fitted_or_refused(estimator, labels, graph):
    """Return the fitted estimator, or the error that it raised; a RuntimeWarning of NumPy is an error, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return estimator.fit(labels, graph=graph, wide=True)
        except Exception as error:
            return error


def told_in_one_sentence(error):
    """Return whether an error is one of a caller, told in a line or two."""
    text = str(error)
    return type(error) in (ValueError, TypeError, MemoryError) and 10 < len(text) < 400 and text.endswith((".", ")"))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_hostile_graph_gives_clusters_or_a_sentence():
    kinds = set()

    @settings_of(GRAPHS)
    @given(st.integers(0, 2**32))
    def attempt(seed):
        rng = np.random.default_rng(seed)
        n, kind = int(rng.choice(SIZES)), str(rng.choice(list(KINDS)))
        graph = KINDS[kind](rng, n, random_pairs(rng, n))
        labels, estimator = labels_of(rng, n, kind == "of names"), estimator_of(rng, n)
        case = f"seed {seed}: {kind}, {n} objects, {estimator}"
        result = fitted_or_refused(estimator, labels, graph)
        if isinstance(result, Exception):
            assert told_in_one_sentence(result), f"{case}: {type(result).__name__}: {result}"
            assert REFUSED.get(kind, "") in str(result), f"{case}: {result}"
        else:
            assert kind not in REFUSED, case
            assert kind not in SPOILT or graph.nnz == 0, case
            kinds.add(kind)
            check(result, n, case)

    attempt()
    assert len(kinds) >= 5  # else the graphs test nothing but refusals


def check(found, n, case):
    """Check that labels are 0 … k - 1 of n objects, and that memberships are probabilities."""
    labels = np.asarray(found.labels_)
    assert labels.shape == (n,), case
    assert set(labels.tolist()) == set(range(found.n_clusters_)), case
    if getattr(found, "_memberships", None) is not None:
        assert np.isfinite(found.membership_).all(), case
        np.testing.assert_allclose(found.membership_.sum(axis=1), 1.0, atol=1e-9, err_msg=case)
        assert np.isfinite(found.potts_), case
        assert found.effective_members_ > 0, case
