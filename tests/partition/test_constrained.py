"""Average linkage with must-links and cannot-links: the merges are those of a dense matrix of all pairs of objects."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from conftest import random_labels, structured_labels
from oracles import constrained_average_linkage, constrained_leaves, must_groups
from scipy.sparse import coo_array

import gpuens as ge
from gpuens.partition.linkage import conduct


def drawn_links(rng, n, n_must, n_cannot):
    """Draw links without contradictions."""
    must = [(i, j) for i, j in rng.integers(n, size=(n_must, 2)).tolist() if i != j]
    group = must_groups(n, must)
    cannot = [(i, j) for i, j in rng.integers(n, size=(n_cannot, 2)).tolist() if group[i] != group[j]]
    return must, cannot


def together_of(labels):
    """Return the number of clusterings that put each two objects together (N, N)."""
    return sum(((column[:, None] == column) & (column[:, None] >= 0)).astype(int) for column in np.asarray(labels).T)


def expected_of(labels, must, cannot):
    """Return the merges of the oracle, the number of leaves, and the names of the clusters that are left."""
    leaves = constrained_leaves(labels, must, cannot)
    merges, left = constrained_average_linkage(together_of(labels), leaves, cannot, labels.shape[1])
    return merges, len(leaves), left


def assert_equal_merges(dendrogram, merges, n_leaves, left):
    n_must = len(dendrogram.kept) + 1 - n_leaves
    kept, absorbed = dendrogram.kept[n_must:].tolist(), dendrogram.absorbed[n_must:].tolist()
    ours = list(zip(kept, absorbed, dendrogram.similarities[n_must:].tolist(), strict=True))
    heights = np.minimum.accumulate([similarity for *_, similarity in merges]).tolist() if merges else []
    assert {merge[:2] for merge in ours[: len(merges)]} == {merge[:2] for merge in merges}
    assert [merge[2] for merge in ours[: len(merges)]] == heights
    positive = sum(height > 0 for height in heights)
    assert [merge[:2] for merge in ours[:positive]] == [merge[:2] for merge in merges[:positive]]
    assert [merge[1:] for merge in ours[len(merges) :]] == [(b, 0.0) for b in left[1:]]
    assert (dendrogram.similarities[:n_must] == 1.0).all()
    assert (dendrogram.most_clusters, dendrogram.fewest_clusters) == (n_leaves, len(left))


@pytest.mark.parametrize("kind", conduct.KINDS)
@pytest.mark.parametrize("distinct", [None, 8])
def test_merges_equal_those_of_all_pairs_of_objects(kind, distinct):
    rng = np.random.default_rng(0 if distinct is None else distinct)
    for seed in range(12):
        n = int(rng.integers(10, 30))
        missing = 0.3 * (seed % 3 == 0)
        labels = random_labels(n, int(rng.integers(1, 7)), (2, 5), distinct=distinct, missing=missing, seed=seed)
        must, cannot = drawn_links(rng, n, int(rng.integers(0, 8)), int(rng.integers(0, 3 * n)))
        with conduct.only(kind):
            fit = ge.EAC(distance_threshold=0.5).fit(labels, must_link=must or None, cannot_link=cannot)
        assert_equal_merges(fit.dendrogram_, *expected_of(labels, must, cannot))
        group = np.array(must_groups(n, must))
        np.testing.assert_array_equal(fit.labels_, fit.labels_[group])
        assert all(fit.labels_[i] != fit.labels_[j] for i, j in cannot)


def test_many_cannot_links_of_similar_rows():
    """Each region must not join the regions of its list, and finds others, which the list does not have."""
    n = 60
    labels, _ = structured_labels(n, 5, 2, noise=0.3, seed=3)
    first, second = np.triu_indices(n // 2, 1)
    cannot = list(zip(first.tolist(), second.tolist(), strict=True))
    fit = ge.EAC(n // 2).fit(labels, cannot_link=cannot)
    assert_equal_merges(fit.dendrogram_, *expected_of(labels, [], cannot))
    assert len(set(fit.labels_[: n // 2])) == n // 2


def test_lists_of_many_rows_equal_the_dense_matrix():
    n = 150
    labels, _ = structured_labels(n, 4, 6, noise=0.5, split=3, seed=1)
    rng = np.random.default_rng(1)
    must, cannot = drawn_links(rng, n, 30, 120)
    fit = ge.EAC(distance_threshold=0.3).fit(labels, must_link=must, cannot_link=cannot)
    assert_equal_merges(fit.dendrogram_, *expected_of(labels, must, cannot))


@pytest.mark.parametrize("make", [ge.LWEA, ge.WEAC, lambda k: ge.EAC(k, weights=np.arange(1, 6))])
def test_weighted_merges_are_the_most_similar_allowed_ones(make):
    """Replay of the merges on the dense matrix, up to rounding."""
    rng = np.random.default_rng(4)
    for seed in range(4):
        n = 40
        labels, _ = structured_labels(n, 5, 4, noise=0.4, seed=seed)
        must, cannot = drawn_links(rng, n, 6, 40)
        fit = make(20).fit(labels, must_link=must, cannot_link=cannot)
        ensemble = fit.reduction_.ensemble
        shares = np.zeros((n, ensemble.n_clusters))
        for i, row in enumerate(ensemble.codes[fit.reduction_.row_of]):
            shares[i, ensemble.offsets[:-1] + row] = 1
        similarity = (shares * fit.similarity_.weights) @ shares.T / 5
        members = {g: np.flatnonzero(fit.reduction_.row_of == g) for g in range(len(ensemble))}
        d = fit.dendrogram_
        forbidden = np.zeros((n, n), dtype=bool)
        forbidden[tuple(np.array(cannot).T)] = forbidden[tuple(np.array(cannot).T[::-1])] = True

        def mean(a, b, of=members, s=similarity, no=forbidden):
            pairs = np.ix_(of[a], of[b])
            return -np.inf if no[pairs].any() else s[pairs].mean()

        n_must = d.n_leaves - d.most_clusters
        for i, (a, b) in enumerate(zip(d.kept.tolist(), d.absorbed.tolist(), strict=True)):
            if n_must <= i < d.n_leaves - d.fewest_clusters:
                best = max(mean(x, y) for x in members for y in members if x < y)
                np.testing.assert_allclose([mean(a, b), d.similarities[i]], best, rtol=1e-9, atol=1e-12)
            members[a] = np.concatenate([members[a], members.pop(b)])


def test_links_that_are_no_links_change_nothing():
    labels, _ = structured_labels(80, 5, 3, seed=5)
    plain, linked = ge.EAC(3).fit(labels), ge.EAC(3).fit(labels, must_link=[], cannot_link=[])
    np.testing.assert_array_equal(plain.labels_, linked.labels_)
    np.testing.assert_array_equal(plain.distances_, linked.distances_)
    np.testing.assert_array_equal(plain.children_, linked.children_)


def test_linked_objects_of_one_row_are_apart_or_together():
    labels = np.repeat([[0, 0, 0], [1, 0, 1]], [6, 1], axis=0)[:, [0, 2]]
    fit = ge.EAC(3).fit(labels, cannot_link=[[0, 1], [1, 2], [0, 2]])
    assert len(set(fit.labels_[:3])) == 3
    assert fit.distances_.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert ge.EAC(1).fit(labels, must_link=[[0, 1]]).labels_.tolist() == [0] * 7


def test_weights_of_objects_count_as_copies():
    labels, _ = structured_labels(30, 4, 3, noise=0.4, seed=6)
    weights = np.random.default_rng(0).integers(1, 4, 30)
    copies = np.repeat(np.arange(30), weights)
    first = np.searchsorted(copies, np.arange(30))
    cannot = np.array([[0, 7], [3, 4]])
    must = np.array([[1, 2], [2, 11]])
    others = [[first[i], first[i] + t] for i in np.unique([cannot, must]) for t in range(1, weights[i])]
    weighted = ge.EAC(5).fit(labels, sample_weight=weights, must_link=must, cannot_link=cannot)
    copied = ge.EAC(5).fit(labels[copies], must_link=first[must].tolist() + others, cannot_link=first[cannot])
    np.testing.assert_array_equal(weighted.labels_[copies], copied.labels_)


def test_other_cuts_and_new_objects():
    labels, _ = structured_labels(50, 6, 4, noise=0.3, seed=7)
    links = {"must_link": [[0, 1], [1, 2]], "cannot_link": [[3, 4], [4, 5], [3, 5]]}
    fit = ge.EAC(6).fit(labels, **links)
    for k in (3, 4, 20):
        np.testing.assert_array_equal(fit.cut(k), ge.EAC(k).fit_predict(labels, **links))
    assert fit.children_.shape == (49, 2)
    assert set(fit.predict(labels)) <= set(range(6))
    with pytest.raises(ValueError, match="cannot_link allows no merge of the last 3 clusters; ask for at least 3"):
        fit.cut(2)
    with pytest.raises(ValueError, match="must_link leaves only"):
        fit.cut(50)
    with pytest.raises(AttributeError, match="those of links are not"):
        fit.cophenetic_correlation()


def test_suggested_numbers_are_raised_to_what_links_allow():
    labels = np.repeat([[0, 0, 0], [1, 1, 1]], 5, axis=0)
    cannot = [[i, j] for i in range(4) for j in range(i)]
    fit = ge.EAC().fit(labels, cannot_link=cannot)
    assert fit.n_clusters_ == 4


def test_names_positions_and_matrices_are_the_same_links():
    labels, _ = structured_labels(20, 4, 3, noise=0.4, seed=8)
    names = [f"cell {i}" for i in range(20)]
    frame = pd.DataFrame(labels, index=names)
    pairs = np.array([[0, 9], [3, 17], [5, 6]])
    expected = ge.LWEA(6).fit_predict(labels, cannot_link=pairs)
    named = np.array(names)[pairs]
    matrix = coo_array((np.ones(6), (np.r_[pairs[:, 0], pairs[:, 1]], np.r_[pairs[:, 1], pairs[:, 0]])), (20, 20))
    for given in (named, named.tolist(), pd.DataFrame(named), matrix, pairs):
        np.testing.assert_array_equal(ge.LWEA(6).fit_predict(frame, cannot_link=given), expected)
    np.testing.assert_array_equal(ge.consensus(frame, 6, cannot_link=named), expected)
    with pytest.raises(TypeError, match="cannot_link were given, but Spatial uses labels and neighbours alone"):
        ge.consensus(frame, 6, cannot_link=named, graph=pairs)
    with pytest.raises(TypeError, match="graph was given, too"):
        ge.consensus(frame, 6, method="eac", cannot_link=named, graph=pairs)


def test_numbers_beside_an_index_of_numbers_are_names_in_a_frame_alone():
    labels, _ = structured_labels(20, 4, 3, noise=0.4, seed=8)
    pairs = np.array([[0, 9], [3, 17], [5, 6]])
    expected = ge.LWEA(6).fit_predict(labels, cannot_link=pairs)
    for index in (range(1, 21), np.random.default_rng(0).permutation(20)):
        frame = pd.DataFrame(labels, index=index)
        names = pd.DataFrame(frame.index.to_numpy()[pairs])
        np.testing.assert_array_equal(ge.LWEA(6).fit_predict(frame, cannot_link=names), expected)
        with pytest.raises(ValueError, match="cannot_link has numbers, which may be positions, or names"):
            ge.LWEA(6).fit(frame, cannot_link=pairs)
    np.testing.assert_array_equal(ge.LWEA(6).fit_predict(pd.DataFrame(labels), cannot_link=pairs), expected)


def test_contradictions_name_a_shortest_chain():
    names = list("abcdefghijklmnop")
    frame = pd.DataFrame(np.eye(16, 2, dtype=int), index=names)
    must = [["a", "b"], ["b", "d"], ["d", "e"], ["a", "c"], ["c", "e"]]
    with pytest.raises(ValueError, match="a and e must not be together, but a–c–e must; leave out one of these links"):
        ge.EAC(2).fit(frame, must_link=must, cannot_link=[["e", "a"]])
    line = list(pairwise(names))
    with pytest.raises(ValueError, match="a and p must not be together, but a–b–c–d–…–m–n–o–p must"):
        ge.EAC(2).fit(frame, must_link=line, cannot_link=[["p", "a"]])


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({"cannot_link": [[1, 1]]}, "cannot_link parts 1 from itself; leave out this pair."),
        ({"must_link": [[0, 1, 2]]}, "must_link must be pairs of objects, an array (n_pairs, 2)"),
        ({"must_link": [[0], [1, 2]]}, "must_link must be pairs of objects, an array (n_pairs, 2)"),
        ({"must_link": [[0, 99]]}, "must_link: labels are of 6 objects, but the edges have an object 99"),
        ({"cannot_link": [["x", "y"]]}, "cannot_link: labels have no object 'x'"),
        ({"cannot_link": [[0, -1]]}, "cannot_link: edges: the first two columns must hold the numbers of objects"),
    ],
)
def test_pairs_that_are_none_are_refused(links, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ge.EAC(2).fit(np.eye(6, 3, dtype=int), **links)


@pytest.mark.parametrize(
    ("method", "fit", "message"),
    [
        (ge.LWGP(2), {}, "LWGP (LWCA and TransferCut) does not use them; Median, and EAC, LWEA and WEAC"),
        (ge.EAC(2, linkage="single"), {}, "EAC (Coassociation and SingleLinkage) does not use them"),
        (ge.EAC(2, missing="ignore"), {}, "does not use them"),
        (ge.EAC(2, min_size=2), {}, "min_size=2 was given, too"),
        (ge.EAC(2, reduction="sample:10"), {}, "reduction="),
        (ge.EAC(2), {"graph": [[0, 1]]}, "graph was given, too"),
        (ge.Median(reduction="sample:10"), {}, "reduction="),
    ],
)
def test_fits_that_cannot_use_links_are_refused(method, fit, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        method.fit(np.eye(6, 3, dtype=int), must_link=[[0, 1]], **fit)
